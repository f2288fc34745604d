"""The selection of fields of tuples and rows.

Promises: indexes are checked when the program is built.
Does not know: streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from millstream.errors import InvalidArgument, InvalidArgumentType
from millstream.types.factory import TypeInformation, Types


def select_fields(
    record_type: TypeInformation, field_indexes: Sequence[int]
) -> tuple[Callable[[Any], tuple[Any, ...]], TypeInformation]:
    """Return a function that keeps some fields of a record, and the type of its result.

    Raises:
        InvalidArgumentType: The records have no fields.
        InvalidArgument: An index is out of range, or there is none.

    """
    fields = getattr(record_type, "field_types", None)
    if fields is None:
        msg = f"project needs a stream of tuples or rows, not of {record_type}"
        raise InvalidArgumentType(msg, hint="set output_type=Types.TUPLE([...]) on the operator before it")
    wrong = [index for index in field_indexes if not 0 <= index < len(fields)]
    if wrong or not field_indexes:
        msg = f"project({', '.join(map(str, field_indexes))}): fields are 0 to {len(fields) - 1}"
        raise InvalidArgument(msg)
    indexes = tuple(field_indexes)

    def project_fields(record: Any) -> tuple[Any, ...]:
        return tuple(record[index] for index in indexes)

    return project_fields, Types.TUPLE([fields[index] for index in indexes])
