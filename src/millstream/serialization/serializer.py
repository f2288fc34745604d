"""Serializers that users write for values of one class.

Promises: serializers are equal when their class and their fields are.
Does not know: types described by `TypeInformation`; those have their Arrow type."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import BinaryIO, Generic, TypeVar

T = TypeVar("T")


class TypeSerializer(ABC, Generic[T]):
    r"""Writes and reads values of one class.

    Example:
        >>> class Ascii(TypeSerializer):
        ...     def serialize(self, element, stream):
        ...         stream.write(element.encode("ascii") + b"\n")
        ...     def deserialize(self, stream):
        ...         return stream.readline()[:-1].decode("ascii")
        >>> from io import BytesIO
        >>> Ascii().deserialize(BytesIO(b"tea\n"))
        'tea'

    """

    @abstractmethod
    def serialize(self, element: T, stream: BinaryIO) -> None:
        """Write one value.

        Args:
            element: The value.
            stream: The stream that gets the bytes.

        """

    @abstractmethod
    def deserialize(self, stream: BinaryIO) -> T:
        """Read one value.

        Args:
            stream: The stream; it is read to the end of the value.

        """

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"
