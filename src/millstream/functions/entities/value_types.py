"""Types of messages and persisted values of stateful functions.

Promises: a value of a built-in type has the bytes that StateFun's SDKs give it; a value that does not fit its type is
refused where it is written.
Does not know: messages, state."""

from __future__ import annotations

import json
import operator
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from millstream.errors import InvalidArgument, InvalidArgumentType
from millstream.types.factory import TypeInformation, Types

BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())


class TypeSerializer(ABC):
    """Serializes and deserializes the values of a type.

    Example:
        >>> from millstream.statefun import IntType
        >>> IntType.serializer().deserialize(IntType.serializer().serialize(7))
        7

    """

    @abstractmethod
    def serialize(self, value: Any) -> bytes:
        """Return the value as bytes.

        Args:
            value: A value of the type.

        """

    @abstractmethod
    def deserialize(self, byte: bytes) -> Any:
        """Return the value of some bytes.

        Args:
            byte: The bytes.

        """


class Type(ABC):
    """The type of messages and persisted values.

    Attributes:
        typename: The name of the type, as `namespace/name`. Both ends of a message must use the same.
        type_info: How persisted values are stored; None to store their bytes.

    Example:
        >>> from millstream.statefun import make_json_type
        >>> make_json_type("com.example/order").typename
        'com.example/order'

    """

    type_info: TypeInformation | None = None

    def __init__(self, typename: str) -> None:
        if not typename or not isinstance(typename, str):
            msg = f"{typename!r} is not the name of a type"
            raise InvalidArgument(msg, hint="use namespace/name")
        self.typename = typename

    @abstractmethod
    def serializer(self) -> TypeSerializer:
        """Return the serializer of the type."""

    def check(self, value: Any) -> Any:
        """Return the value as it is read back; for types with `type_info`.

        Args:
            value: A value of the type.

        """
        return value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.typename!r})"


class SimpleType(Type):
    """A type of two functions; use `simple_type`."""

    def __init__(self, typename: str, serialize_fn: Any, deserialize_fn: Any) -> None:
        super().__init__(typename)
        if not callable(serialize_fn) or not callable(deserialize_fn):
            msg = f"type '{typename}' has no {'deserialize_fn' if callable(serialize_fn) else 'serialize_fn'}"
            raise InvalidArgument(msg, hint="pass both functions")
        self._serializer = _FunctionSerializer(typename, serialize_fn, deserialize_fn)

    def serializer(self) -> TypeSerializer:
        """Return the serializer that calls both functions."""
        return self._serializer


class _FunctionSerializer(TypeSerializer):
    def __init__(self, typename: str, serialize_fn: Callable[[Any], Any], deserialize_fn: Callable[[Any], Any]) -> None:
        self._typename, self._serialize, self._deserialize = typename, serialize_fn, deserialize_fn

    def serialize(self, value: Any) -> bytes:
        data = self._serialize(value)
        if isinstance(data, str):
            return data.encode()
        if not isinstance(data, bytes | bytearray):
            msg = f"serialize_fn of type '{self._typename}' returned {type(data).__name__}"
            raise InvalidArgumentType(msg, hint="return bytes")
        return bytes(data)

    def deserialize(self, byte: bytes) -> Any:
        return self._deserialize(byte)


class BuiltInType(Type, TypeSerializer):
    """A primitive type, in the form of StateFun's wrapper messages: the default value has no bytes."""

    def __init__(
        self, name: str, type_info: TypeInformation, tag: bytes, code: str, convert: Callable[[Any], Any]
    ) -> None:
        super().__init__(f"io.statefun.types/{name}")
        self.type_info = type_info
        self._tag, self._format, self._convert = tag, struct.Struct(f"<{code}"), convert

    def serializer(self) -> TypeSerializer:
        """Return this object: it is also the serializer."""
        return self

    def check(self, value: Any) -> Any:
        """Return the value, rounded to the type; raise for a value that is not of the type."""
        return self._format.unpack(self._pack(value))[0]

    def _pack(self, value: Any) -> bytes:
        try:
            return self._format.pack(self._convert(value))
        except (struct.error, TypeError, OverflowError, ValueError):
            raise self._misfit(value) from None

    def _misfit(self, value: Any) -> InvalidArgumentType:
        msg = f"{value!r} is not a value of type '{self.typename}'"
        return InvalidArgumentType(msg, hint="convert it, or use another type")

    def serialize(self, value: Any) -> bytes:
        """Return the bytes of the wrapper message."""
        data = self._pack(value)
        return self._tag + data if any(data) else b""

    def deserialize(self, byte: bytes) -> Any:
        """Return the value of the wrapper message."""
        if not byte:
            return self._format.unpack(bytes(self._format.size))[0]
        return self._format.unpack(byte[len(self._tag) :])[0]

    def __reduce__(self) -> tuple[Any, ...]:
        return _built_in, (self.typename,)


class _StringType(BuiltInType):
    def check(self, value: Any) -> str:
        if not isinstance(value, str):
            raise self._misfit(value)
        return value

    def serialize(self, value: Any) -> bytes:
        data = self.check(value).encode()
        return pack_field(1, data) if data else b""

    def deserialize(self, byte: bytes) -> str:
        return unpack_fields(byte).get(1, b"").decode()


def _to_bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _to_float(value: Any) -> float:
    if isinstance(value, str):
        raise TypeError
    return float(value)


BoolType = BuiltInType("bool", Types.BOOLEAN(), b"\x08", "?", _to_bool)
IntType = BuiltInType("int", Types.INT(), b"\x0d", "i", operator.index)
FloatType = BuiltInType("float", Types.FLOAT(), b"\x0d", "f", _to_float)
LongType = BuiltInType("long", Types.LONG(), b"\x09", "q", operator.index)
DoubleType = BuiltInType("double", Types.DOUBLE(), b"\x09", "d", _to_float)
StringType = _StringType("string", Types.STRING(), b"", "x", str)

BUILT_IN: dict[str, BuiltInType] = {
    built_in.typename: built_in for built_in in (BoolType, IntType, FloatType, LongType, DoubleType, StringType)
}


def _built_in(typename: str) -> BuiltInType:
    return BUILT_IN[typename]


def simple_type(
    typename: str,
    serialize_fn: Callable[[Any], bytes | str],
    deserialize_fn: Callable[[bytes], Any],
) -> Type:
    """Create a type from two functions.

    Args:
        typename: The name of the type, as `namespace/name`.
        serialize_fn: Returns a value as bytes, or as text.
        deserialize_fn: Returns the value of some bytes.

    Example:
        >>> point = simple_type("com.example/point", lambda p: f"{p[0]} {p[1]}", lambda b: tuple(map(int, b.split())))
        >>> point.serializer().deserialize(point.serializer().serialize((1, 2)))
        (1, 2)

    """
    return SimpleType(typename, serialize_fn, deserialize_fn)


def make_json_type(typename: str) -> Type:
    """Create a type whose values are JSON: dicts, lists, strings, numbers, booleans.

    Args:
        typename: The name of the type, as `namespace/name`.

    """
    return SimpleType(typename, lambda value: json.dumps(value, ensure_ascii=False), json.loads)


def make_protobuf_type(cls: Any, namespace: str | None = None) -> Type:
    """Create a type whose values are messages of a generated Protobuf class.

    Args:
        cls: The generated class.
        namespace: The namespace of the typename; `type.googleapis.com` by default.

    """
    name = getattr(getattr(cls, "DESCRIPTOR", None), "full_name", None)
    if not name:
        msg = f"{cls!r} is not a class that was generated by Protobuf"
        raise InvalidArgumentType(msg, hint="pass the class of a message")
    return SimpleType(
        f"{namespace or 'type.googleapis.com'}/{name}", lambda value: value.SerializeToString(), cls.FromString
    )


# ----------------------------------------------------------------------------------- Protobuf fields of type bytes


def pack_field(number: int, data: bytes) -> bytes:
    """Return a length-delimited field of a Protobuf message."""
    size, length = len(data), bytearray()
    while size > 0x7F:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    length.append(size)
    return bytes((number << 3 | 2,)) + bytes(length) + data


def unpack_fields(message: bytes) -> dict[int, bytes]:
    """Return the fields of a Protobuf message that has length-delimited fields only."""
    fields: dict[int, bytes] = {}
    index = 0
    while index < len(message):
        number, size, shift = message[index] >> 3, 0, 0
        while True:
            index += 1
            size |= (message[index] & 0x7F) << shift
            shift += 7
            if message[index] < 0x80:
                break
        fields[number] = message[index + 1 : index + 1 + size]
        index += 1 + size
    return fields
