"""Names of objects as texts of the Table API.

Promises: a name is read as in SQL: parts with dots between them, special names in backticks.
Does not know: catalogs."""

from __future__ import annotations

from millstream.sql.errors import SqlValidationError
from millstream.sql.syntax import parse_expression
from millstream.sql.syntax import tree as s


def parse_object_path(text: str) -> tuple[str, ...]:
    """Split a name as it is written in SQL into its parts."""
    node = parse_expression(text)
    if not isinstance(node, s.Name):
        message = f"'{text}' is not the name of an object"
        raise SqlValidationError(message)
    return node.parts
