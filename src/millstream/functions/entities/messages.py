"""Messages to stateful functions and to egresses, and the addresses of functions.

Promises: a message holds the bytes of its value, so that what happens to the value later does not change it. Reading it
as another type than that of its value is an error.
Does not know: how messages are delivered."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from millstream.errors import InvalidArgument, InvalidArgumentType
from millstream.functions.entities.value_types import (
    BUILT_IN,
    BoolType,
    BuiltInType,
    DoubleType,
    FloatType,
    IntType,
    LongType,
    StringType,
    Type,
    pack_field,
    unpack_fields,
)
from millstream.types.factory import Types
from millstream.types.row import Row

_PRIMITIVES: dict[str, BuiltInType] = {
    "int_value": IntType,
    "float_value": FloatType,
    "long_value": LongType,
    "str_value": StringType,
    "double_value": DoubleType,
    "bool_value": BoolType,
}


class SdkAddress(NamedTuple):
    """The address of a function: its type and the id of the instance.

    Attributes:
        namespace: The part of the typename before its last slash.
        name: The part of the typename after it.
        id: The id of the instance.
        typename: The type of the function.

    Example:
        >>> SdkAddress.of("com.example/cart", "ann").name
        'cart'

    """

    namespace: str
    name: str
    id: str
    typename: str

    @classmethod
    def of(cls, typename: str, id: str) -> SdkAddress:
        """Return the address of an instance of a function type.

        Args:
            typename: The type of the function.
            id: The id of the instance.

        """
        namespace, name = parse_typename(typename)
        return cls(namespace, name, id, typename)

    def __str__(self) -> str:
        return f"{self.typename}:{self.id}"


@lru_cache(maxsize=4096)
def parse_typename(typename: Any) -> tuple[str, str]:
    """Return namespace and name of a function type or an egress; raise for a name that is not valid."""
    namespace, _, name = typename.rpartition("/") if isinstance(typename, str) else ("", "", "")
    if not namespace or not name or ":" in typename:
        msg = f"{typename!r} is not the name of a function type or an egress"
        raise InvalidArgument(msg, hint="use namespace/name, without a colon")
    return namespace, name


class TypedValue(NamedTuple):
    """A value as bytes, with the name of its type."""

    typename: str
    has_value: bool
    value: bytes

    def as_type(self, tpe: Type) -> Any:
        """Return the value; raise if it has another type."""
        if tpe.typename != self.typename:
            msg = f"a value of type '{self.typename}' was read as '{tpe.typename}'"
            raise InvalidArgumentType(msg, hint="check the type first: message.is_type(...)")
        return tpe.serializer().deserialize(self.value) if self.has_value else None

    def __repr__(self) -> str:
        built_in = BUILT_IN.get(self.typename)
        text = repr(self.value if built_in is None else built_in.deserialize(self.value))
        return f"{self.typename} {text if len(text) < 120 else text[:117] + '...'}"


def to_typed_value(value_type: Any, value: Any) -> TypedValue:
    """Return a value with its type."""
    if not isinstance(value_type, Type):
        msg = f"{value_type!r} is not a type of values"
        raise InvalidArgumentType(msg, hint="pass a Type, such as StringType or make_json_type(...)")
    if value is None:
        msg = f"a message of type '{value_type.typename}' has no value"
        raise InvalidArgument(msg, hint="pass a value that is not None")
    return TypedValue(value_type.typename, True, value_type.serializer().serialize(value))


def _methods_of(tpe: Type) -> tuple[Callable[[Message], bool], Callable[[Message], Any]]:
    """Return `is_type` and `as_type` for one type."""
    typename = tpe.typename

    def is_type(message: Message) -> bool:
        return message.typed_value.typename == typename

    def as_type(message: Message) -> Any:
        return message.typed_value.as_type(tpe)

    return is_type, as_type


class Message:
    """A message to a function. Programs create messages with `message_builder`.

    Attributes:
        target_typename: The type of the function that gets the message.
        target_id: The id of the instance that gets it.
        typed_value: Its value as bytes, with the name of its type.

    Example:
        >>> message = message_builder("com.example/cart", "ann", int_value=3)
        >>> message.is_string(), message.as_int()
        (False, 3)

    """

    __slots__ = ("target_id", "target_typename", "typed_value")

    def __init__(self, target_typename: str, target_id: str, typed_value: TypedValue) -> None:
        self.target_typename, self.target_id, self.typed_value = target_typename, target_id, typed_value

    def __repr__(self) -> str:
        return f"Message(to {self.target_typename}:{self.target_id}, {self.typed_value!r})"

    def is_type(self, tpe: Type) -> bool:
        """Return whether the value has a type.

        Args:
            tpe: The type.

        """
        return self.typed_value.typename == tpe.typename

    def as_type(self, tpe: Type) -> Any:
        """Return the value.

        Args:
            tpe: The type of the value.

        Raises:
            InvalidArgumentType: The value has another type.

        """
        return self.typed_value.as_type(tpe)

    def value_typename(self) -> str:
        """Return the name of the type of the value."""
        return self.typed_value.typename

    def raw_value(self) -> bytes | None:
        """Return the value as bytes."""
        return self.typed_value.value if self.typed_value.has_value else None

    is_int, as_int = _methods_of(IntType)
    is_bool, as_bool = _methods_of(BoolType)
    is_long, as_long = _methods_of(LongType)
    is_string, as_string = _methods_of(StringType)
    is_float, as_float = _methods_of(FloatType)
    is_double, as_double = _methods_of(DoubleType)


class EgressMessage:
    """A message to an egress. Programs create it with a builder, such as `egress_message_builder`.

    Attributes:
        typename: The egress.
        typed_value: The value as bytes, with the name of its type.

    Example:
        >>> from millstream.statefun import StringType
        >>> egress_message_builder("com.example/greets", "hello", StringType)
        EgressMessage(to com.example/greets, io.statefun.types/string 'hello')

    """

    __slots__ = ("typed_value", "typename")

    def __init__(self, typename: str, typed_value: TypedValue) -> None:
        parse_typename(typename)
        self.typename, self.typed_value = typename, typed_value

    def __repr__(self) -> str:
        return f"EgressMessage(to {self.typename}, {self.typed_value!r})"

    def value_typename(self) -> str:
        """Return the name of the type of the value."""
        return self.typed_value.typename

    def raw_value(self) -> bytes | None:
        """Return the value as bytes."""
        return self.typed_value.value if self.typed_value.has_value else None


def message_builder(target_typename: str, target_id: str, **kwargs: Any) -> Message:
    """Create a message to a function.

    Args:
        target_typename: The type of the function.
        target_id: The id of the instance.
        **kwargs: One of `int_value`, `long_value`, `float_value`, `double_value`, `str_value` and `bool_value`; or
            `value` and `value_type`.

    Raises:
        InvalidArgument: The target or the value is missing.
        InvalidArgumentType: The value does not have the type.

    Example:
        >>> message_builder("com.example/inbox", "Ann", str_value="hello")
        Message(to com.example/inbox:Ann, io.statefun.types/string 'hello')

    """
    parse_typename(target_typename)
    if not target_id or not isinstance(target_id, str):
        msg = f"a message to '{target_typename}' has the id {target_id!r}"
        raise InvalidArgument(msg, hint="an id is a string that is not empty")
    if len(kwargs) == 1:
        [(keyword, value)] = kwargs.items()
        built_in = _PRIMITIVES.get(keyword)
        if built_in is not None and value is not None:
            typed_value = TypedValue(built_in.typename, True, built_in.serialize(value))
            return Message(target_typename, target_id, typed_value)
    if kwargs.keys() != {"value", "value_type"}:
        msg = f"a message to '{target_typename}:{target_id}' was built with {', '.join(kwargs) or 'no value'}"
        raise InvalidArgumentType(msg, hint=f"pass one of {', '.join(_PRIMITIVES)}; or value and value_type")
    return Message(target_typename, target_id, to_typed_value(kwargs["value_type"], kwargs["value"]))


def egress_message_builder(target_typename: str, value: Any, value_type: Type) -> EgressMessage:
    """Create a message to an egress.

    Args:
        target_typename: The egress.
        value: The value.
        value_type: The type of the value.

    """
    return EgressMessage(target_typename, to_typed_value(value_type, value))


class _KafkaRecordType(Type):
    """Records for Kafka: rows of topic, key and value."""

    type_info = Types.ROW_NAMED(
        ["topic", "key", "value"], [Types.STRING(), Types.STRING(), Types.PRIMITIVE_ARRAY(Types.BYTE())]
    )

    def serializer(self) -> Any:
        return self

    def serialize(self, value: Row) -> bytes:
        topic, key, data = value
        fields = ((1, None if key is None else key.encode()), (2, data or None), (3, topic.encode()))
        return b"".join(pack_field(number, field) for number, field in fields if field is not None)

    def deserialize(self, byte: bytes) -> Row:
        fields = unpack_fields(byte)
        key = fields[1].decode() if 1 in fields else None
        return Row(topic=fields[3].decode(), key=key, value=fields.get(2, b""))


KafkaRecordType: Type = _KafkaRecordType("type.googleapis.com/io.statefun.sdk.egress.KafkaProducerRecord")
"""The type of the messages that `kafka_egress_message` creates: rows of `topic`, `key` and `value`."""


def kafka_egress_message(
    typename: str, topic: str, value: Any, value_type: Type | None = None, key: str | None = None
) -> EgressMessage:
    """Create a record for Kafka.

    Args:
        typename: The egress.
        topic: The topic.
        value: The value; without a type a string, bytes, an int (four bytes, big-endian) or a float (eight bytes).
        value_type: The type that serializes the value.
        key: The key of the record.

    """
    if not topic or value is None:
        msg = f"a message to the Kafka egress '{typename}' has no {'value' if topic else 'topic'}"
        raise InvalidArgument(msg, hint="pass topic and value")
    data = to_typed_value(value_type, value).value if value_type is not None else _kafka_bytes(value)
    row = Row(topic=topic, key=key, value=data)
    return EgressMessage(typename, to_typed_value(KafkaRecordType, row))


def _kafka_bytes(value: Any) -> bytes:
    match value:
        case str():
            return value.encode()
        case bytes() | bytearray():
            return bytes(value)
        case int() if -(2**31) <= value < 2**31:
            return struct.pack(">i", value)
        case float():
            return struct.pack(">d", value)
    msg = f"{value!r} cannot be the value of a Kafka record"
    raise InvalidArgumentType(msg, hint="pass value_type, or a string, bytes, an int of 32 bits or a float")
