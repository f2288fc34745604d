"""PyFlink's module of this name: TypeSerializer, and the serializer of the void namespace.

Promises: the void namespace is serialized to no bytes.
Does not know: other serializers."""

from __future__ import annotations

from typing import BinaryIO

from millstream.serialization.serializer import TypeSerializer

__all__ = ["TypeSerializer", "VoidNamespaceSerializer"]

void = b""


class VoidNamespaceSerializer(TypeSerializer[bytes]):
    r"""Serializes the void namespace, the namespace of state outside of windows.

    Example:
        >>> from io import BytesIO
        >>> VoidNamespaceSerializer().deserialize(BytesIO(b"\0"))
        b''

    """

    def serialize(self, element: bytes, stream: BinaryIO) -> None:
        """Write nothing."""

    def deserialize(self, stream: BinaryIO) -> bytes:
        """Return the void namespace."""
        return void
