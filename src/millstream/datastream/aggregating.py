"""sum, min, max, min_by and max_by of keyed streams, as reduce functions.

Promises: PyFlink's rules: sum, min and max change one field of the first record, min_by and max_by keep whole records.
Does not know: streams."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from millstream.errors import UserError
from millstream.functions import ReduceFunction
from millstream.types.fields import read_field
from millstream.types.row import Row


class NoSuchPosition(UserError):
    """The field to aggregate does not exist in a record."""

    def __init__(self, position: object, record: object) -> None:
        super().__init__(
            f"the field {position!r} to aggregate does not exist in {record!r}",
            hint="give the position or the name of a field of a tuple, Row or dataclass",
        )


@dataclass(frozen=True)
class FieldAggregate(ReduceFunction):
    """Aggregates one field: `function` is sum, min, max, min_by or max_by."""

    function: str
    position: int | str

    @property
    def order_free(self) -> bool:
        """Whether the result does not depend on the order of the records after the first."""
        return self.function in ("sum", "min", "max")

    def reduce(self, value1: Any, value2: Any) -> Any:
        """Return the aggregate of two records."""
        old, new = self._get(value1), self._get(value2)
        match self.function:
            case "sum":
                return self._with(value1, old + new)
            case "min" | "max":
                replaces = new < old if self.function == "min" else new > old
                return self._with(value1, new) if replaces else value1
            case "min_by":
                return value2 if new < old else value1
        return value2 if new > old else value1

    def _get(self, record: Any) -> Any:
        if not isinstance(record, tuple | list | Row) and not hasattr(record, "__dataclass_fields__"):
            if self.position == 0:
                return record
            raise NoSuchPosition(self.position, record)
        try:
            return read_field(record, self.position)
        except (IndexError, KeyError, AttributeError, TypeError, ValueError, UserError):
            raise NoSuchPosition(self.position, record) from None

    def _with(self, record: Any, value: Any) -> Any:
        position: Any = self.position
        if isinstance(record, Row):
            copy = Row._from(
                record._fields if hasattr(record, "_fields") else None, list(record), record.get_row_kind()
            )
            copy[position] = value
            return copy
        if isinstance(record, tuple) and hasattr(record, "_replace") and isinstance(position, str):
            return record._replace(**{position: value})
        if isinstance(record, tuple):
            fields = (*record[:position], value, *record[position + 1 :])
            return type(record)(*fields) if hasattr(record, "_fields") else fields
        if isinstance(record, list):
            return [*record[:position], value, *record[position + 1 :]]
        if hasattr(record, "__dataclass_fields__"):
            name = position if isinstance(position, str) else list(record.__dataclass_fields__)[position]
            return replace(record, **{name: value})
        return value
