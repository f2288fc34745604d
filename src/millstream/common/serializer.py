"""PyFlink's module of this name: TypeSerializer, and the serializer of the namespace that is none.

Promises: the void namespace takes no bytes.
Does not know: other serializers."""

from __future__ import annotations

from typing import BinaryIO

from millstream.serialization.serializer import TypeSerializer

__all__ = ["TypeSerializer", "VoidNamespaceSerializer"]

void = b""


class VoidNamespaceSerializer(TypeSerializer[bytes]):
    """Writes nothing and reads nothing."""

    def serialize(self, element: bytes, stream: BinaryIO) -> None:
        """Write nothing."""

    def deserialize(self, stream: BinaryIO) -> bytes:
        """The void namespace."""
        return void
