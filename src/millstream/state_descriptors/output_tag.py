"""Output tags: names of side outputs.

Promises: two tags are the same when their ids are; a function emits to one by yielding `(tag, record)`.
Does not know: who reads the side output."""

from __future__ import annotations

from typing import Any

from millstream.errors import UserError
from millstream.state_descriptors.descriptors import as_type
from millstream.types.factory import TypeInformation, Types


class InvalidOutputTag(UserError, ValueError):
    """An output tag without an id."""

    def __init__(self, tag_id: object) -> None:
        self.tag_id = tag_id
        super().__init__(f"an output tag needs a non-empty string as its id, not {tag_id!r}")


class OutputTag:
    """Name and record type of a side output. A list of types stands for a row of them, None for any object."""

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
