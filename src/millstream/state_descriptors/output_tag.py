"""OutputTag: the name of a side output.

Promises: tags with equal ids are equal. A function emits to a side output by yielding `(tag, record)`.
Does not know: which streams read the side output."""

from __future__ import annotations

from typing import Any

from millstream.errors import UserError
from millstream.state_descriptors.descriptors import as_type
from millstream.types.factory import TypeInformation, Types


class InvalidOutputTag(UserError, ValueError):
    """An output tag has no id."""

    def __init__(self, tag_id: object) -> None:
        self.tag_id = tag_id
        super().__init__(f"an output tag needs a non-empty string as its id, not {tag_id!r}")


class OutputTag:
    """The id and the record type of a side output.

    Example:
        >>> from millstream.common import Types
        >>> OutputTag("late", Types.STRING())
        OutputTag('late', String)

    Args:
        tag_id: The id, a string that is not empty.
        type_info: The type of the records; a list of types is a row of them, and None means that records are pickled.

    Raises:
        InvalidOutputTag: If the id is not valid.

    """

    __slots__ = ("tag_id", "type_info")

    def __init__(self, tag_id: str, type_info: TypeInformation | list[TypeInformation] | Any = None) -> None:
        if not isinstance(tag_id, str) or not tag_id:
            raise InvalidOutputTag(tag_id)
        self.tag_id = tag_id
        self.type_info: TypeInformation = Types.ROW(type_info) if isinstance(type_info, list) else as_type(type_info)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutputTag) and self.tag_id == other.tag_id

    def __hash__(self) -> int:
        return hash(self.tag_id)

    def __reduce__(self) -> tuple[Any, ...]:
        return OutputTag, (self.tag_id, self.type_info)

    def __repr__(self) -> str:
        return f"OutputTag({self.tag_id!r}, {self.type_info})"
