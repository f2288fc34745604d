"""Configuration: keys and values, read with Flink's rules.

Promises: what was set with a type is had back with it; text is parsed as Flink parses it (booleans, numbers, durations,
memory sizes, lists, maps), and a malformed value is a UserError naming key, value and the expected form.
Does not know: which options exist; an option brings its key, type and default."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from millstream.config.secrets import shown
from millstream.errors import UserError
from millstream.times import Duration

T = TypeVar("T")

_SIZES = {
    **dict.fromkeys(("", "b", "bytes"), 1),
    **dict.fromkeys(("k", "kb", "kibibytes"), 1 << 10),
    **dict.fromkeys(("m", "mb", "mebibytes"), 1 << 20),
    **dict.fromkeys(("g", "gb", "gibibytes"), 1 << 30),
    **dict.fromkeys(("t", "tb", "tebibytes"), 1 << 40),
}
_SIZE = re.compile(r"\s*(\d+)\s*([a-z]*)\s*", re.IGNORECASE)
_BINARY = "!!binary |-\n  "


class MalformedValue(UserError):
    """The value of an option cannot be read as its type."""

    def __init__(self, key: str, value: object, expected: str) -> None:
        self.key = key
        self.value = value
        self.expected = expected
        super().__init__(f"could not parse value {shown(key, value)!r} for key {key!r}", hint=f"expected {expected}")


class MemorySize(int):
    """A number of bytes, written as Flink writes it."""

    @staticmethod
    def parse(text: str) -> MemorySize:
        """The size a text names: a whole number with a unit, none meaning bytes. ValueError if it names none."""
        match = _SIZE.fullmatch(text)
        if match is None or match[2].lower() not in _SIZES:
            raise ValueError(text)
        return MemorySize(int(match[1]) * _SIZES[match[2].lower()])

    def __str__(self) -> str:
        for unit, label in ((1 << 30, "gb"), (1 << 20, "mb"), (1 << 10, "kb")):
            if self and self % unit == 0:
                return f"{self // unit} {label}"
        return f"{int(self)} bytes"

    def __repr__(self) -> str:
        return f"MemorySize({str(self)!r})"


@dataclass(frozen=True)
class ConfigOption(Generic[T]):
    """A key with the type of its value and the value it has unless set."""

    key: str
    default: T
    description: str = ""
    type: type = str
    fallback_keys: tuple[str, ...] = ()
    choices: tuple[str, ...] = field(default=())

    def parse(self, raw: Any) -> T:
        """The value that a raw value means for this option."""
        value = parse_value(self.key, raw, self.type)
        if self.choices:
            plain = str(value).lower().replace("_", "-")
            for choice in self.choices:
                if choice.lower().replace("_", "-") == plain:
                    value = choice
                    break
            else:
                raise MalformedValue(self.key, raw, f"one of {', '.join(self.choices)}")
        return value  # type: ignore[no-any-return]


class ConfigOptions:
    """Starts building an option: `ConfigOptions.key("a.b").int_type().default_value(3)`."""

    @staticmethod
    def key(key: str) -> ConfigOptions.OptionBuilder:
        """A builder for the option with this key."""
        return ConfigOptions.OptionBuilder(key)

    class OptionBuilder:
        """An option that has a key and no type yet."""

        def __init__(self, key: str) -> None:
            self._key = key

        def boolean_type(self) -> ConfigOptions.TypedConfigOptionBuilder[bool]:
            """The value is a bool."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, bool)

        def int_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """The value is an int."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, int)

        def long_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """The value is an int."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, int)

        def float_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """The value is a float."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, float)

        def double_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """The value is a float."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, float)

        def string_type(self) -> ConfigOptions.TypedConfigOptionBuilder[str]:
            """The value is a str."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, str)

    class TypedConfigOptionBuilder(Generic[T]):
        """An option that has a key and a type."""

        def __init__(self, key: str, kind: type[T]) -> None:
            self._key = key
            self._kind = kind

        def default_value(self, value: T) -> ConfigOption[T]:
            """The option, with this value unless set."""
            return ConfigOption(self._key, value, type=self._kind)

        def no_default_value(self) -> ConfigOption[T | None]:
            """The option, without a value unless set."""
            return ConfigOption(self._key, None, type=self._kind)


class Configuration:
    """Values by key."""

    @classmethod
    def from_dict(cls, map: Mapping[str, Any]) -> Configuration:
        """A configuration with these entries."""
        configuration = cls()
        for key, value in map.items():
            configuration._values[key] = _stored(value)
        return configuration

    def __init__(self, other: Configuration | None = None) -> None:
        """An empty configuration, or a copy of another."""
        self._values: dict[str, Any] = {} if other is None else dict(other._values)

    def get(self, option: ConfigOption[T], default: T | None = None) -> T:
        """The value of an option, under its key or one of its older keys; else `default`, else the option's own."""
        for key in (option.key, *option.fallback_keys):
            if key in self._values:
                return option.parse(self._values[key])
        return option.default if default is None else default

    def set(self, option: ConfigOption[T] | str, value: Any) -> Configuration:
        """Set the value of an option, given by its constant or its key."""
        key = option if isinstance(option, str) else option.key
        if value is None:
            expected = "a value; remove_config takes one away"
            raise MalformedValue(key, value, expected)
        self._values[key] = _stored(value)
        return self

    def contains(self, option: ConfigOption[Any]) -> bool:
        """Whether the option is set, under its key or one of its older keys."""
        return any(key in self._values for key in (option.key, *option.fallback_keys))

    def get_string(self, key: str, default_value: str) -> str:
        """The value as text."""
        return _text(self._values[key]) if key in self._values else default_value

    def set_string(self, key: str, value: str) -> Configuration:
        """Set a text."""
        return self.set(key, value)

    def get_integer(self, key: str, default_value: int) -> int:
        """The value as an int."""
        return self._get(key, int, default_value)

    def set_integer(self, key: str, value: int) -> Configuration:
        """Set an int."""
        return self.set(key, value)

    def get_boolean(self, key: str, default_value: bool) -> bool:
        """The value as a bool."""
        return self._get(key, bool, default_value)

    def set_boolean(self, key: str, value: bool) -> Configuration:
        """Set a bool."""
        return self.set(key, value)

    def get_float(self, key: str, default_value: float) -> float:
        """The value as a float."""
        return self._get(key, float, default_value)

    def set_float(self, key: str, value: float) -> Configuration:
        """Set a float."""
        return self.set(key, float(value))

    def get_bytearray(self, key: str, default_value: bytearray) -> bytearray:
        """The value as bytes."""
        return bytearray(self._get(key, bytes, bytes(default_value)))

    def set_bytearray(self, key: str, value: bytearray) -> Configuration:
        """Set bytes."""
        return self.set(key, bytes(value))

    def _get(self, key: str, kind: type[T], default: T) -> T:
        return parse_value(key, self._values[key], kind) if key in self._values else default

    @staticmethod
    def parse_list_value(value: str) -> list[str]:
        """The items of a list written as `a;b` or `[a, b]`."""
        return parse_list(value)

    def key_set(self) -> AbstractSet[str]:
        """All keys that have a value."""
        return set(self._values)

    def add_all_to_dict(self, target_dict: dict[str, Any]) -> None:
        """Put all entries into a dict, with the types they were set with."""
        target_dict.update(self._values)

    def add_all(self, other: Configuration, prefix: str | None = None) -> Configuration:
        """Take over all entries of another configuration, the prefix before their keys."""
        for key, value in other._values.items():
            self._values[f"{prefix or ''}{key}"] = value
        return self

    def contains_key(self, key: str) -> bool:
        """Whether the key has a value."""
        return key in self._values

    def to_dict(self) -> dict[str, str]:
        """All entries as text."""
        return {key: _text(value) for key, value in self._values.items()}

    def remove_config(self, key: str) -> bool:
        """Remove the value of a key; whether there was one."""
        return self._values.pop(key, None) is not None

    def __deepcopy__(self, memodict: Any = None) -> Configuration:
        return Configuration(self)

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and _typed(self._values) == _typed(other._values)

    def __str__(self) -> str:
        return f"{{{', '.join(f'{key}={shown(key, _text(value))}' for key, value in self._values.items())}}}"

    def __repr__(self) -> str:
        return f"Configuration({self})"


def parse_value(key: str, raw: Any, kind: type) -> Any:
    """A raw value (typed, or text) as a value of `kind`; MalformedValue if it is none."""
    if isinstance(raw, kind) and not (kind is int and isinstance(raw, bool)):
        return raw
    if kind is bytes and not _text(raw).startswith(_BINARY):
        raise MalformedValue(key, raw, _EXPECTED[bytes])
    try:
        return _PARSERS[kind](_text(raw))
    except (ValueError, UserError):
        raise MalformedValue(key, raw, _EXPECTED[kind]) from None


def parse_list(text: str) -> list[str]:
    """The items of a list: `[a, b]`, one `- a` to a line, or items between semicolons; items may be quoted."""
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        return _parts(text[1:-1], ",")
    if text.startswith("- "):
        return [_unquoted(line.strip()[2:]) for line in text.splitlines()]
    return _parts(text, ";")


def parse_map(text: str) -> dict[str, str]:
    """The entries of a map: `a:1,b:2` or `{a: 1, b: 2}`; keys and values may be quoted."""
    text = text.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1]
    entries = {}
    for part in _parts(text, ",", unquote=False):
        colon = next(_outside_quotes(part, ":"), None)
        if colon is None:
            raise ValueError(part)
        entries[_unquoted(part[:colon])] = _unquoted(part[colon + 1 :])
    return entries


def _parts(text: str, separator: str, unquote: bool = True) -> list[str]:
    parts, start = [], 0
    for index in _outside_quotes(text, separator):
        parts.append(text[start:index])
        start = index + 1
    parts.append(text[start:])
    return [_unquoted(part) if unquote else part.strip() for part in parts if part.strip()]


def _outside_quotes(text: str, separator: str) -> Iterator[int]:
    quote = ""
    for index, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == separator:
            yield index


def _unquoted(text: str) -> str:
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1].replace(text[0] * 2, text[0])
    return text


def quoted(text: str) -> str:
    """The text as an item of a list or map, with quotes where it needs them."""
    return "'" + text.replace("'", "''") + "'" if not text or re.search(r"[;,:'\"\s\[\]{}]", text) else text


def _parse_int(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise ValueError(text)
    return int(text)


def _parse_float(text: str) -> float:
    if "_" in text:
        raise ValueError(text)
    return float(text)


def _parse_bool(text: str) -> bool:
    values = {"true": True, "false": False}
    if text.lower() not in values:
        raise ValueError(text)
    return values[text.lower()]


_PARSERS: dict[type, Callable[[str], Any]] = {
    str: str,
    int: _parse_int,
    float: _parse_float,
    bool: _parse_bool,
    bytes: lambda text: base64.b64decode(text.removeprefix(_BINARY)),
    Duration: Duration.parse,
    MemorySize: MemorySize.parse,
    list: parse_list,
    dict: parse_map,
}
_EXPECTED: dict[type, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    bytes: "bytes that were set as bytes",
    Duration: 'a duration such as "10 s", "500 ms", "5 min" or "1 h"',
    MemorySize: 'a memory size such as "64 mb", "512 kb" or "1 gb"',
    list: 'a list such as "a;b" or "[a, b]"',
    dict: 'a map such as "a:1,b:2"',
}


def _stored(value: Any) -> Any:
    """What is kept of a value: plain scalars as they are, everything else in the text form Flink writes."""
    if isinstance(value, (bytearray, bytes)):
        return bytes(value)
    if type(value) in (str, int, float, bool):
        return value
    if isinstance(value, (list, tuple)):
        return ";".join(quoted(_text(item)) for item in value)
    if isinstance(value, dict):
        return ",".join(f"{quoted(_text(k))}:{quoted(_text(v))}" for k, v in value.items())
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return _BINARY + base64.b64encode(value).decode()
    return str(getattr(value, "name", value))


def _typed(values: dict[str, Any]) -> dict[str, tuple[type, Any]]:
    return {key: (type(value), value) for key, value in values.items()}
