"""TypeInformation: what every type promises, and leaf types made of one column.

Promises: a type knows its Arrow type, converts whole columns both ways, compares by value, and survives a trip
through JSON without anything named there being imported or executed.
Does not know: which types exist; each registers its own JSON tags."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import pyarrow as pa

from millstream.errors import UserError
from millstream.types.arrow_types import Column

_BY_TAG: dict[str, type[TypeInformation]] = {}


class UnknownType(UserError):
    """A type description names a type that does not exist here."""

    hint = "the description was written by another version, or is damaged"

    def __init__(self, description: object) -> None:
        self.description = description
        super().__init__(f"no type is described by {description!r}")


class InvalidTypeArgument(UserError):
    """A type was built from something that cannot be part of it."""

    def __init__(self, message: str, value: object, *, hint: str | None = None) -> None:
        self.value = value
        super().__init__(message, hint=hint)


class TypeInformation(ABC):
    """The type of the elements of a stream or a state: checks, converts and describes whole columns of them.

    None is allowed wherever a value is."""

    json_tags: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for tag in cls.json_tags:
            _BY_TAG[tag] = cls

    @property
    @abstractmethod
    def arrow_type(self) -> pa.DataType:
        """The Arrow type of a column of this type."""

    @property
    def is_columnar(self) -> bool:
        """Whether every part of a value has an Arrow type of its own; False where Python objects are encoded."""
        return True

    @abstractmethod
    def conform(self, values: list[Any]) -> list[Any]:
        """The same list when every value is exactly of this type, a converted one where Flink would convert.

        Raises TypeMismatch naming the first value of a column that is neither."""

    @abstractmethod
    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        """The values as an array of `arrow_type`; converts and refuses as `conform` does."""

    def from_arrow(self, array: pa.Array | pa.ChunkedArray) -> list[Any]:
        """The values of an array that `to_arrow` made."""
        if isinstance(array, pa.ChunkedArray):
            return [value for chunk in array.chunks for value in self._from_array(chunk)]
        return self._from_array(array)

    @abstractmethod
    def _from_array(self, array: pa.Array) -> list[Any]: ...

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """A description that `type_from_json` reads."""

    @classmethod
    @abstractmethod
    def _from_json(cls, description: dict[str, Any]) -> TypeInformation: ...

    @staticmethod
    def type_from_json(description: dict[str, Any]) -> TypeInformation:
        """The type that `to_json` described. A class named in it is found only if the program has loaded it."""
        try:
            return _BY_TAG[description["type"]]._from_json(description)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise UnknownType(description) from None

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(repr(self))


class LeafTypeInfo(TypeInformation):
    """A type whose values are one column."""

    def __init__(self, column: Column, text: str) -> None:
        super().__init__()
        self._column = column
        self._text = text

    @property
    def arrow_type(self) -> pa.DataType:
        """The Arrow type of the column."""
        return self._column.arrow_type

    def conform(self, values: list[Any]) -> list[Any]:
        """As TypeInformation promises."""
        return self._column.conform(values)

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        """As TypeInformation promises."""
        return self._column.to_arrow(values)

    def _from_array(self, array: pa.Array) -> list[Any]:
        return self._column.from_arrow(array)

    def __repr__(self) -> str:
        return self._text


def checked(types: Sequence[Any], owner: str) -> list[TypeInformation]:
    """The types as a list, each of them proven to be one."""
    for kind in types:
        if not isinstance(kind, TypeInformation):
            message = f"{owner} is made of types, got {kind!r}"
            raise InvalidTypeArgument(message, kind, hint="call the factory, as in Types.STRING()")
    return list(types)
