"""Protocol Buffers: messages of a generated class or of a descriptor set file.

Promises: fields match by name; nested messages are rows, repeated fields arrays, enums names or numbers; fields
that are not set are treated as in Flink's protobuf format.
Does not know: how .proto files are compiled."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from millstream.config.configuration import ConfigOption
from millstream.formats.contract import BadFormat, Decoded, Format, MissingLibrary, UnencodableRecord, decode_each
from millstream.formats.format_types import BITS, FormatType, TypeRoot
from millstream.formats.options import IGNORE_PARSE_ERRORS, Settings
from millstream.times import Instant

MESSAGE_CLASS = ConfigOption(
    "message-class-name",
    None,
    "The compiled class, as package.module_pb2.Message (a module of another name must have been imported by the "
    "program), or the message's full name in descriptor-set-file.",
    str,
)
DESCRIPTORS = ConfigOption(
    "descriptor-set-file", None, "A descriptor set file, written by protoc --include_imports --descriptor_set_out.", str
)
READ_DEFAULTS = ConfigOption(
    "read-default-values",
    False,
    "Whether fields that are not set have their default values. If false, they are NULL.",
    bool,
)
NULL_STRING = ConfigOption(
    "write-null-string-literal", "", "The text that is written for NULL in an array or map of strings.", str
)
OPTIONS: tuple[ConfigOption[Any], ...] = (MESSAGE_CLASS, DESCRIPTORS, IGNORE_PARSE_ERRORS, READ_DEFAULTS, NULL_STRING)
_TIMESTAMP = "google.protobuf.Timestamp"


class MessageClassRefused(BadFormat):
    """The option message-class-name names a class that cannot be used."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        super().__init__(
            f"{name} cannot be used as a message class: {reason}",
            hint="name a class of a module that protoc generated (package.module_pb2.Message), import the module in "
            "your program, or give protobuf.descriptor-set-file",
        )


def message_class(name: str, descriptors: str | None, *, trusted: bool = False) -> Any:
    """Return the class of a message: imported by its name, or created from a descriptor set file.

    A name may come from a catalog or a compiled plan, and importing a module runs it. So for a table only modules named
    `..._pb2`, as protoc names them, are imported; the program must have imported any other module. `trusted` is for a
    name that was checked before, in the process that created the program."""
    try:
        pool_module = importlib.import_module("google.protobuf.descriptor_pool")
        set_module = importlib.import_module("google.protobuf.descriptor_pb2")
        factory = importlib.import_module("google.protobuf.message_factory")
    except ImportError:
        raise MissingLibrary(ProtobufFormat.name, "protobuf", "protobuf") from None
    if descriptors is None:
        module, _, member = name.replace(":", ".").rpartition(".")
        if not trusted and module not in sys.modules:
            if not module.endswith("_pb2"):
                raise MessageClassRefused(name, f"the program has not imported the module {module!r}")
            if not _module_exists(module):
                raise MessageClassRefused(name, "there is no such module")
        try:
            cls = getattr(importlib.import_module(module), member)
        except (ImportError, AttributeError, ValueError):
            raise MessageClassRefused(name, "there is no such class") from None
        message_type = importlib.import_module("google.protobuf.message").Message
        if not (isinstance(cls, type) and issubclass(cls, message_type)):
            raise MessageClassRefused(name, "it is not a message class")
        return cls
    pool = pool_module.DescriptorPool()
    try:
        for file in set_module.FileDescriptorSet.FromString(Path(descriptors).read_bytes()).file:
            pool.Add(file)
        return factory.GetMessageClass(pool.FindMessageTypeByName(name))
    except (OSError, KeyError, TypeError, ValueError) as problem:
        message = f"there is no message {name} in {descriptors}: {problem}"
        raise BadFormat(message, hint="write it with protoc --include_imports --descriptor_set_out") from None


def _module_exists(module: str) -> bool:
    """Whether a module exists, without importing its parent packages."""
    path, name = None, ""
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is None:
            return False
        path = spec.submodule_search_locations or []
    return True


class ProtobufFormat(Format):
    """The format `protobuf`."""

    name = "protobuf"

    def __init__(self, data_type: FormatType, options: Mapping[str, Any], trusted: bool = False) -> None:
        self._options = dict(options)
        settings = Settings(self.name, OPTIONS, options)
        super().__init__(data_type, settings.on_error())
        self._class = message_class(settings.require(MESSAGE_CLASS), settings.get(DESCRIPTORS), trusted=trusted)
        self._errors = (importlib.import_module("google.protobuf.message").Error, ValueError, TypeError, OverflowError)
        self._defaults = bool(settings.get(READ_DEFAULTS))
        self._null: str = settings.get(NULL_STRING)
        self._read = self._reader(data_type, self._class.DESCRIPTOR)
        self._fill = self._writer(data_type, self._class.DESCRIPTOR)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.data_type, self._options, True)

    def decode(self, records: Sequence[bytes | None]) -> Decoded:
        """Decode messages of the class."""
        parse, read = self._class.FromString, self._read
        return decode_each(records, lambda data: read(parse(bytes(data))), self._errors)

    def encode(self, values: Sequence[Any]) -> list[bytes]:
        """Encode records as messages; a field that is null is not set."""
        encoded = []
        for value in values:
            message = self._class()
            try:
                self._fill(message, value)
                encoded.append(message.SerializeToString())
            except (*self._errors, AttributeError) as problem:
                raise UnencodableRecord(self.name, value, str(problem)) from None
        return encoded

    def _reader(self, data_type: FormatType, descriptor: Any) -> Callable[[Any], Any]:
        make = data_type.maker()
        members = [self._member(name, child, _field(descriptor, name)) for name, child in data_type.fields()]
        return lambda message: make([read(message) for read in members])

    def _member(self, name: str, data_type: FormatType, field: Any) -> Callable[[Any], Any]:
        if _is_map(field):
            entry = field.message_type.fields_by_name
            key = self._value(data_type.children[0], entry["key"])
            item = self._value(data_type.children[1], entry["value"])
            return lambda message: {key(k): item(v) for k, v in getattr(message, name).items()}
        if _is_repeated(field):
            element = self._value(data_type.children[0], field)
            return lambda message: [element(value) for value in getattr(message, name)]
        value = self._value(data_type, field)
        # a field without presence always has a value; one with presence that is not set is null or has its default
        if not field.has_presence or (self._defaults and field.message_type is None):
            return lambda message: value(getattr(message, name))
        return lambda message: value(getattr(message, name)) if message.HasField(name) else None

    def _value(self, data_type: FormatType, field: Any) -> Callable[[Any], Any]:
        if field.message_type is not None:
            if field.message_type.full_name == _TIMESTAMP and data_type.root is TypeRoot.TIMESTAMP_LTZ:
                return lambda value: Instant(value.seconds, value.nanos)
            return self._reader(data_type, field.message_type)
        if field.enum_type is not None and data_type.root is TypeRoot.STRING:
            numbers = field.enum_type.values_by_number
            return lambda value: numbers[value].name if value in numbers else "UNRECOGNIZED"
        if data_type.root in BITS:
            limit = 1 << (BITS[data_type.root] - 1)
            return lambda value: _to_signed(value, limit)
        return lambda value: value

    def _writer(self, data_type: FormatType, descriptor: Any) -> Callable[[Any, Any], None]:
        split = data_type.splitter()
        setters = [self._setter(name, child, _field(descriptor, name)) for name, child in data_type.fields()]

        def fill(message: Any, value: Any) -> None:
            for put, item in zip(setters, split(value), strict=True):
                if item is not None:
                    put(message, item)

        return fill

    def _setter(self, name: str, data_type: FormatType, field: Any) -> Callable[[Any, Any], None]:
        if _is_map(field):
            inner = field.message_type.fields_by_name["value"]
            if inner.message_type is not None:
                fill = self._writer(data_type.children[1], inner.message_type)

                def fill_map(message: Any, value: Any) -> None:
                    for key, item in value.items():
                        fill(getattr(message, name)[key], item)

                return fill_map
            entry = self._plain(inner, self._null)
            return lambda message, value: getattr(message, name).update({k: entry(v) for k, v in value.items()})
        if _is_repeated(field):
            if field.message_type is not None:
                fill_one = self._writer(data_type.children[0], field.message_type)

                def fill_list(message: Any, value: Any) -> None:
                    for item in value:
                        fill_one(getattr(message, name).add(), item)

                return fill_list
            element = self._plain(field, self._null)
            return lambda message, value: getattr(message, name).extend([element(item) for item in value])
        if field.message_type is not None:
            if field.message_type.full_name == _TIMESTAMP and data_type.root is TypeRoot.TIMESTAMP_LTZ:
                return lambda message, value: _set_timestamp(getattr(message, name), value)
            fill_member = self._writer(data_type, field.message_type)

            def set_message(message: Any, value: Any) -> None:
                inner_message = getattr(message, name)
                inner_message.SetInParent()
                fill_member(inner_message, value)

            return set_message
        plain = self._plain(field, self._null)
        return lambda message, value: setattr(message, name, plain(value))

    @staticmethod
    def _plain(field: Any, null: str) -> Callable[[Any], Any]:
        """Return the conversion to a scalar of the library; null in a collection becomes the default value."""
        if field.enum_type is not None:
            names = field.enum_type.values_by_name
            first = field.enum_type.values[0].number
            return lambda value: first if value is None else names[value].number if isinstance(value, str) else value
        default = null if field.type == field.TYPE_STRING else field.default_value
        return lambda value: default if value is None else value


def _field(descriptor: Any, name: str) -> Any:
    field = descriptor.fields_by_name.get(name)
    if field is None:
        message = f"the message {descriptor.full_name} has no field {name!r}"
        raise BadFormat(message, hint=f"it has {', '.join(descriptor.fields_by_name)}")
    return field


def _is_repeated(field: Any) -> bool:
    is_repeated = getattr(field, "is_repeated", None)
    return bool(is_repeated) if is_repeated is not None else field.label == field.LABEL_REPEATED


def _is_map(field: Any) -> bool:
    message_type = field.message_type
    return message_type is not None and bool(message_type.GetOptions().map_entry)


def _to_signed(value: int, limit: int) -> int:
    """Convert unsigned integers to the signed ones that Java has."""
    if -limit <= value < limit:
        return value
    if value < 2 * limit:
        return value - 2 * limit
    message = f"{value} does not fit"
    raise ValueError(message)


def _set_timestamp(message: Any, value: Instant) -> None:
    message.seconds, message.nanos = value.seconds, value.nanos
    message.SetInParent()
