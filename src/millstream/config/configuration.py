"""Configuration: keys and values, read with Flink's rules.

Promises: a typed value keeps its type; text is parsed as Flink parses it (booleans, numbers, durations,
memory sizes, lists, maps), and a malformed value is a UserError naming key, value and the expected form.
Does not know: which options exist; an option brings its key, type and default."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from millstream.config.memory_size import MemorySize
from millstream.config.secrets import mask_secret
from millstream.errors import UserError
from millstream.times import Duration

T = TypeVar("T")

_BINARY = "!!binary |-\n  "


class MalformedValue(UserError, ValueError):
    """The value of an option cannot be read as its type."""

    def __init__(self, key: str, value: object, expected: str) -> None:
        self.key = key
        self.value = value
        self.expected = expected
        super().__init__(
            f"could not parse value {mask_secret(key, value)!r} for key {key!r}", hint=f"expected {expected}"
        )


@dataclass(frozen=True)
class ConfigOption(Generic[T]):
    """An option: its key, its type, and its default value.

    Example:
        >>> option = ConfigOptions.key("orders.limit").int_type().default_value(100)
        >>> Configuration().get(option), Configuration.from_dict({"orders.limit": "5"}).get(option)
        (100, 5)

    """

    key: str
    default: T
    description: str = ""
    type: type = str
    fallback_keys: tuple[str, ...] = ()
    choices: tuple[str, ...] = field(default=())

    def parse(self, raw: Any) -> T:
        """Convert a raw value to the type of the option; raises MalformedValue if that is not possible.

        Args:
            raw: A value of the type of the option, or its text form.

        """
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
    """Build an option.

    Example:
        >>> from millstream.common import ConfigOptions
        >>> ConfigOptions.key("a.b").int_type().default_value(3).default
        3

    """

    @staticmethod
    def key(key: str) -> ConfigOptions.OptionBuilder:
        """Create a builder of the option with a key.

        Args:
            key: The key, such as `parallelism.default`.

        """
        return ConfigOptions.OptionBuilder(key)

    class OptionBuilder:
        """A builder that has a key, but no type."""

        def __init__(self, key: str) -> None:
            self._key = key

        def boolean_type(self) -> ConfigOptions.TypedConfigOptionBuilder[bool]:
            """Set the type to bool."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, bool)

        def int_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """Set the type to int."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, int)

        def long_type(self) -> ConfigOptions.TypedConfigOptionBuilder[int]:
            """Set the type to int."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, int)

        def float_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """Set the type to float."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, float)

        def double_type(self) -> ConfigOptions.TypedConfigOptionBuilder[float]:
            """Set the type to float."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, float)

        def string_type(self) -> ConfigOptions.TypedConfigOptionBuilder[str]:
            """Set the type to str."""
            return ConfigOptions.TypedConfigOptionBuilder(self._key, str)

    class TypedConfigOptionBuilder(Generic[T]):
        """A builder that has a key and a type."""

        def __init__(self, key: str, value_type: type[T]) -> None:
            self._key = key
            self._value_type = value_type

        def default_value(self, value: T) -> ConfigOption[T]:
            """Create the option with a default value.

            Args:
                value: The value of the option where it is not set.

            """
            return ConfigOption(self._key, value, type=self._value_type)

        def no_default_value(self) -> ConfigOption[T | None]:
            """Create the option without a default value."""
            return ConfigOption(self._key, None, type=self._value_type)


class Configuration:
    """Options and their values, by key.

    Example:
        >>> from millstream.common import Configuration
        >>> Configuration().set_string("pipeline.name", "sensors").get_string("pipeline.name", "")
        'sensors'

    """

    @classmethod
    def from_dict(cls, map: Mapping[str, Any]) -> Configuration:
        """Create a configuration with these entries.

        Args:
            map: Values by key.

        """
        configuration = cls()
        for key, value in map.items():
            configuration._values[key] = _to_stored(value)
        return configuration

    def __init__(self, other: Configuration | None = None) -> None:
        """Create an empty configuration, or a copy of another."""
        self._values: dict[str, Any] = {} if other is None else dict(other._values)

    def get(self, option: ConfigOption[T], default: T | None = None) -> T:
        """Return the value of an option, which may be set under its key or a deprecated key.

        Args:
            option: The option.
            default: Returned if the option is not set; without it, the default of the option.

        Raises:
            MalformedValue: The value cannot be converted to the type of the option.

        """
        for key in (option.key, *option.fallback_keys):
            if key in self._values:
                return option.parse(self._values[key])
        return option.default if default is None else default

    def set(self, option: ConfigOption[T] | str, value: Any) -> Configuration:
        """Set the value of an option, which is named by its constant or its key.

        Args:
            option: The option, or its key.
            value: The value, of the type of the option or in its text form; not None.

        """
        key = option if isinstance(option, str) else option.key
        if value is None:
            expected = "a value; remove_config removes one"
            raise MalformedValue(key, value, expected)
        self._values[key] = _to_stored(value)
        return self

    def contains(self, option: ConfigOption[Any]) -> bool:
        """Return whether the option is set, under its key or a deprecated key.

        Args:
            option: The option.

        """
        return any(key in self._values for key in (option.key, *option.fallback_keys))

    def get_string(self, key: str, default_value: str) -> str:
        """Return the value of a key as text.

        Args:
            key: The key.
            default_value: The result if the key has no value.

        """
        return _text(self._values[key]) if key in self._values else default_value

    def set_string(self, key: str, value: str) -> Configuration:
        """Set the value of a key to a text.

        Args:
            key: The key.
            value: The value.

        """
        return self.set(key, value)

    def get_integer(self, key: str, default_value: int) -> int:
        """Return the value of a key as an int.

        Args:
            key: The key.
            default_value: The result if the key has no value.

        """
        return self._get(key, int, default_value)

    def set_integer(self, key: str, value: int) -> Configuration:
        """Set the value of a key to an int.

        Args:
            key: The key.
            value: The value.

        """
        return self.set(key, value)

    def get_boolean(self, key: str, default_value: bool) -> bool:
        """Return the value of a key as a bool.

        Args:
            key: The key.
            default_value: The result if the key has no value.

        """
        return self._get(key, bool, default_value)

    def set_boolean(self, key: str, value: bool) -> Configuration:
        """Set the value of a key to a bool.

        Args:
            key: The key.
            value: The value.

        """
        return self.set(key, value)

    def get_float(self, key: str, default_value: float) -> float:
        """Return the value of a key as a float.

        Args:
            key: The key.
            default_value: The result if the key has no value.

        """
        return self._get(key, float, default_value)

    def set_float(self, key: str, value: float) -> Configuration:
        """Set the value of a key to a float.

        Args:
            key: The key.
            value: The value.

        """
        return self.set(key, float(value))

    def get_bytearray(self, key: str, default_value: bytearray) -> bytearray:
        """Return the value of a key as bytes.

        Args:
            key: The key.
            default_value: The result if the key has no value.

        """
        return bytearray(self._get(key, bytes, bytes(default_value)))

    def set_bytearray(self, key: str, value: bytearray) -> Configuration:
        """Set the value of a key to bytes.

        Args:
            key: The key.
            value: The value.

        """
        return self.set(key, bytes(value))

    def _get(self, key: str, value_type: type[T], default: T) -> T:
        return parse_value(key, self._values[key], value_type) if key in self._values else default

    @staticmethod
    def parse_list_value(value: str | None) -> list[str]:
        """Parse a list that is written as `a;b` or `[a, b]`; None is an empty list.

        Args:
            value: The text of the list.

        """
        return [] if value is None else parse_list(value)

    def key_set(self) -> AbstractSet[str]:
        """Return all keys that have a value."""
        return set(self._values)

    def add_all_to_dict(self, target_dict: dict[str, Any]) -> None:
        """Add all entries to a dict, with the types they were set with.

        Args:
            target_dict: The dict that gets the entries.

        """
        target_dict.update(self._values)

    def add_all(self, other: Configuration, prefix: str | None = None) -> Configuration:
        """Add all entries of another configuration, with a prefix before their keys.

        Args:
            other: The entries to add; they replace entries of the same key.
            prefix: Text before each key; None adds the keys as they are.

        """
        for key, value in other._values.items():
            self._values[f"{prefix or ''}{key}"] = value
        return self

    def contains_key(self, key: str) -> bool:
        """Return whether the key has a value.

        Args:
            key: The key.

        """
        return key in self._values

    def to_dict(self) -> dict[str, str]:
        """Return all entries as text."""
        return {key: _text(value) for key, value in self._values.items()}

    def remove_config(self, key: str) -> bool:
        """Remove the value of a key, and return whether there was one.

        Args:
            key: The key.

        """
        return self._values.pop(key, None) is not None

    def __deepcopy__(self, memodict: Any = None) -> Configuration:
        return Configuration(self)

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and _with_types(self._values) == _with_types(other._values)

    def __str__(self) -> str:
        return f"{{{', '.join(f'{key}={mask_secret(key, _text(value))}' for key, value in self._values.items())}}}"

    def __repr__(self) -> str:
        return f"Configuration({self})"


def parse_value(key: str, raw: Any, value_type: type) -> Any:
    """Convert a raw value, typed or text, to a type; raises MalformedValue if that is not possible."""
    if isinstance(raw, value_type) and not (value_type is int and isinstance(raw, bool)):
        return raw
    if value_type is bytes and not _text(raw).startswith(_BINARY):
        raise MalformedValue(key, raw, _EXPECTED[bytes])
    try:
        return _PARSERS[value_type](_text(raw))
    except (ValueError, UserError):
        raise MalformedValue(key, raw, _EXPECTED[value_type]) from None


def parse_list(text: str) -> list[str]:
    """Parse a list: `[a, b]`, lines of `- a`, or items separated by semicolons; items may be quoted."""
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        return _parts(text[1:-1], ",")
    if text.startswith("- "):
        return [_unquote(line.strip()[2:]) for line in text.splitlines()]
    return _parts(text, ";")


def parse_map(text: str) -> dict[str, str]:
    """Parse a map: `a:1,b:2` or `{a: 1, b: 2}`; keys and values may be quoted."""
    text = text.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1]
    entries = {}
    for part in _parts(text, ",", unquote=False):
        colon = next(_outside_quotes(part, ":"), None)
        if colon is None:
            raise ValueError(part)
        entries[_unquote(part[:colon])] = _unquote(part[colon + 1 :])
    return entries


def _parts(text: str, separator: str, unquote: bool = True) -> list[str]:
    parts, start = [], 0
    for index in _outside_quotes(text, separator):
        parts.append(text[start:index])
        start = index + 1
    parts.append(text[start:])
    return [_unquote(part) if unquote else part.strip() for part in parts if part.strip()]


def _outside_quotes(text: str, separator: str) -> Iterator[int]:
    quote = ""
    for index, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == separator:
            yield index


def _unquote(text: str) -> str:
    text = text.strip()
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1].replace(text[0] * 2, text[0])
    return text


def quote_if_needed(text: str) -> str:
    """Return a text as an item of a list or map, in quotes if it needs them."""
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


def _to_stored(value: Any) -> Any:
    """Return the stored form of a value: scalars unchanged, other values in the text form of Flink."""
    if isinstance(value, (bytearray, bytes)):
        return bytes(value)
    if type(value) in (str, int, float, bool):
        return value
    if isinstance(value, (list, tuple)):
        return ";".join(quote_if_needed(_text(item)) for item in value)
    if isinstance(value, dict):
        return ",".join(f"{quote_if_needed(_text(k))}:{quote_if_needed(_text(v))}" for k, v in value.items())
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return _BINARY + base64.b64encode(value).decode()
    return str(getattr(value, "name", value))


def _with_types(values: dict[str, Any]) -> dict[str, tuple[type, Any]]:
    return {key: (type(value), value) for key, value in values.items()}
