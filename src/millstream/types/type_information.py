"""TypeInformation: the base class of all types, and leaf types, which consist of one column.

Promises: a type knows its Arrow type, converts whole columns in both directions, compares by value, and can be written
as JSON and read again. Reading JSON imports and executes nothing.
Does not know: which types exist. Each type registers its JSON tags."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import pyarrow as pa

from millstream.errors import UserError
from millstream.types.arrow_types import Column

_BY_TAG: dict[str, type[TypeInformation]] = {}


class UnknownType(UserError):
    """JSON describes a type that does not exist."""

    hint = "the description was written by another version of millstream, or is damaged"

    def __init__(self, description: object) -> None:
        self.description = description
        super().__init__(f"unknown type {description!r}")


class InvalidTypeArgument(UserError, TypeError):
    """An argument of a type is not valid."""

    def __init__(self, message: str, value: object, *, hint: str | None = None) -> None:
        self.value = value
        super().__init__(message, hint=hint)


class TypeInformation(ABC):
    """The type of the elements of a stream or a state; converts whole columns of them. Every value can be None.

    Example:
        >>> from millstream.common import Types
        >>> Types.LONG().to_arrow([1, 2]).to_pylist()
        [1, 2]

    """

    json_tags: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for tag in cls.json_tags:
            _BY_TAG[tag] = cls

    @property
    @abstractmethod
    def arrow_type(self) -> pa.DataType:
        """Return the Arrow type of a column of this type."""

    @property
    def is_columnar(self) -> bool:
        """Return whether each part of a value has its own Arrow type; False if Python objects are pickled."""
        return True

    @abstractmethod
    def conform(self, values: list[Any]) -> list[Any]:
        """Check and convert values.

        Args:
            values: The values.

        Returns:
            The same list if each value is exactly of this type, else a new list with values converted as Flink converts
            them.

        Raises:
            TypeMismatch: For the first value that cannot be converted.

        """

    @abstractmethod
    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        """Convert values to an array of `arrow_type`, with the conversions and errors of `conform`.

        Args:
            values: The values.

        """

    def from_arrow(self, array: pa.Array | pa.ChunkedArray) -> list[Any]:
        """Convert an array that `to_arrow` has created to Python values.

        Args:
            array: The array.

        """
        if isinstance(array, pa.ChunkedArray):
            return [value for chunk in array.chunks for value in self._from_array(chunk)]
        return self._from_array(array)

    @abstractmethod
    def _from_array(self, array: pa.Array) -> list[Any]: ...

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return a description of the type that `type_from_json` reads."""

    @classmethod
    @abstractmethod
    def _from_json(cls, description: dict[str, Any]) -> TypeInformation: ...

    @staticmethod
    def type_from_json(description: dict[str, Any]) -> TypeInformation:
        """Return the type that `to_json` has described.

        A class in the description is used only if the program has already imported it.

        Args:
            description: The description, as values of JSON.

        Raises:
            UnknownType: If the description is not that of a type.

        """
        try:
            return _BY_TAG[description["type"]]._from_json(description)
        except (KeyError, TypeError, ValueError, AttributeError):
            raise UnknownType(description) from None

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(repr(self))


class LeafTypeInfo(TypeInformation):
    """A type whose values are stored in one column."""

    def __init__(self, column: Column, text: str) -> None:
        super().__init__()
        self._column = column
        self._text = text

    @property
    def arrow_type(self) -> pa.DataType:
        """Return the Arrow type of the column."""
        return self._column.arrow_type

    def conform(self, values: list[Any]) -> list[Any]:
        """Check and convert values; see `TypeInformation.conform`."""
        return self._column.conform(values)

    def to_arrow(self, values: Sequence[Any]) -> pa.Array:
        """Convert values to an array of `arrow_type`."""
        return self._column.to_arrow(values)

    def _from_array(self, array: pa.Array) -> list[Any]:
        return self._column.from_arrow(array)

    def __repr__(self) -> str:
        return self._text


def check_types(types: Sequence[Any], owner: str) -> list[TypeInformation]:
    """Return the types as a list.

    Raises:
        InvalidTypeArgument: If one of them is not a type.

    """
    for type_info in types:
        if not isinstance(type_info, TypeInformation):
            message = f"{owner} needs types as arguments, got {type_info!r}"
            raise InvalidTypeArgument(message, type_info, hint="call the factory, as in Types.STRING()")
    return list(types)
