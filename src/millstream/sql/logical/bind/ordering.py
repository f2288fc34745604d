"""ORDER BY: what can be ordered by.

Promises: values without an order are refused at their place in the text.
Does not know: how rows are sorted."""

from __future__ import annotations

from millstream.sql.errors import SqlValidationError
from millstream.sql.types import data_types as t


def check_orderable(kind: t.DataType, at: int) -> None:
    """Refuse a type whose values have no order."""
    if not kind.ordered:
        message = f"ORDER BY cannot be applied to {kind.text()}: its values have no order"
        raise SqlValidationError(message, at=at)
