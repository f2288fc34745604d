"""Strings, bytes and hashes.

Promises: positions count from 1; what lies outside the string is empty, as in Flink.
Does not know: types beyond text."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from functools import lru_cache
from typing import Any
from urllib.parse import quote_plus, unquote_plus, urlsplit

import pyarrow as pa
import pyarrow.compute as pc

from millstream.sql import types as t
from millstream.sql.columns import scalar_value
from millstream.sql.functions import plain_regex
from millstream.sql.functions.registry import by_row, define, vectorized

_S = "string"
_NOT_NULL_STRING = t.STRING


def _joined(kinds: list[t.DataType]) -> t.DataType:
    if all(isinstance(kind, t.CharType) for kind in kinds):
        return t.CharType(sum(kind.length for kind in kinds))  # type: ignore[attr-defined]
    if t.is_bytes(kinds[0]):
        return t.BYTES
    total = sum(getattr(kind, "length", t.MAX_LENGTH) for kind in kinds)
    return t.VarCharType(min(total, t.MAX_LENGTH))


def _concat(*args: Any) -> Any:
    return pc.binary_join_element_wise(*args, pa.scalar("" if pa.types.is_string(args[0].type) else b"", args[0].type))


def _length(kind: t.DataType) -> int:
    return int(getattr(kind, "length", t.MAX_LENGTH))


def _same_as_first(kinds: list[t.DataType]) -> t.DataType:
    return kinds[0]


def _as_long_as_first(kinds: list[t.DataType]) -> t.DataType:
    return t.VarCharType(_length(kinds[0]))


def _as_long_as_last(kinds: list[t.DataType]) -> t.DataType:
    return t.VarCharType(_length(kinds[-1]))


def _overlaid(kinds: list[t.DataType]) -> t.DataType:
    return t.VarCharType(min(t.MAX_LENGTH, _length(kinds[0]) + _length(kinds[1])))


def _part_of_text(kinds: list[t.DataType]) -> t.DataType:
    length = _length(kinds[0])
    return t.VarBinaryType(length) if t.is_bytes(kinds[0]) else t.VarCharType(length)


def _elt_type(kinds: list[t.DataType]) -> t.DataType:
    return t.common_type(kinds[1:]) or t.STRING


define(
    "||",
    _S,
    ("string, string", "bytes, bytes"),
    _joined,
    vectorized(_concat),
    "Both strings, one after the other.",
    syntax="string1 || string2",
)
define(
    "CONCAT", _S, "string...", t.STRING, vectorized(_concat), "All strings, one after the other; NULL when one is NULL."
)
define(
    "CONCAT_WS",
    _S,
    "string, string...",
    t.STRING,
    by_row(lambda sep, *parts: None if sep is None else sep.join(p for p in parts if p is not None), strict=False),
    "All strings that are not NULL, with the first between them.",
)
define(
    "CHAR_LENGTH",
    _S,
    "string",
    t.INT,
    vectorized(lambda v: pc.cast(pc.utf8_length(v), pa.int32())),
    "The number of characters.",
    aliases=("CHARACTER_LENGTH",),
)
define(
    "OCTET_LENGTH",
    _S,
    "text or bytes",
    t.INT,
    vectorized(lambda v: pc.cast(pc.binary_length(v), pa.int32())),
    "The number of bytes.",
)
define(
    "UPPER", _S, "string", _same_as_first, vectorized(pc.utf8_upper), "The string in upper case.", aliases=("UCASE",)
)
define(
    "LOWER", _S, "string", _same_as_first, vectorized(pc.utf8_lower), "The string in lower case.", aliases=("LCASE",)
)
define(
    "POSITION",
    _S,
    "string, string",
    t.INT,
    by_row(lambda needle, hay: hay.find(needle) + 1),
    "Where the first string begins in the second; 0 when it does not.",
    syntax="POSITION(string1 IN string2)",
)


def _trim(side: str, characters: str, value: str) -> str:
    if side == "BOTH":
        return value.strip(characters)
    return value.lstrip(characters) if side == "LEADING" else value.rstrip(characters)


define(
    "TRIM",
    _S,
    "symbol, string, string",
    _as_long_as_last,
    by_row(_trim),
    "The string without certain characters at its ends.",
    syntax="TRIM([BOTH | LEADING | TRAILING] [characters FROM] string)",
)
define(
    "LTRIM",
    _S,
    ("string", "string, string"),
    _as_long_as_first,
    by_row(lambda v, c=" ": v.lstrip(c)),
    "The string without certain characters at its beginning.",
)
define(
    "RTRIM",
    _S,
    ("string", "string, string"),
    _as_long_as_first,
    by_row(lambda v, c=" ": v.rstrip(c)),
    "The string without certain characters at its end.",
)
define(
    "BTRIM",
    _S,
    ("string", "string, string"),
    t.STRING,
    by_row(lambda v, c=" ": v.strip(c)),
    "The string without certain characters at both ends.",
)
define("REPEAT", _S, "string, int", t.STRING, by_row(lambda v, n: v * max(n, 0)), "The string so many times.")


@lru_cache(maxsize=512)
def pattern(text: str) -> re.Pattern[str] | None:
    """A regular expression; None for what is none."""
    try:
        return re.compile(text)
    except re.error:
        return None


def _regexp_replace(value: str, regex: str, new: str) -> str | None:
    found = pattern(regex)
    return None if found is None else found.sub(lambda _match: new, value)


define(
    "REGEXP_REPLACE",
    _S,
    "string, string, string",
    t.STRING,
    by_row(_regexp_replace),
    "The string with every match replaced.",
)


def _overlay(value: str, new: str, start: int, length: int | None = None) -> str:
    count = len(new) if length is None else length
    if start <= 0 or start > len(value):
        return value
    return value[: start - 1] + new + value[start - 1 + max(count, 0) :]


define(
    "OVERLAY",
    _S,
    ("string, string, int", "string, string, int, int"),
    _overlaid,
    by_row(_overlay),
    "The string with a part replaced.",
    syntax="OVERLAY(string1 PLACING string2 FROM start [FOR length])",
)
define(
    "STARTSWITH",
    _S,
    ("string, string", "bytes, bytes"),
    t.BOOLEAN,
    by_row(lambda v, p: v.startswith(p)),
    "TRUE when the first string begins with the second.",
)
define(
    "ENDSWITH",
    _S,
    ("string, string", "bytes, bytes"),
    t.BOOLEAN,
    by_row(lambda v, p: v.endswith(p)),
    "TRUE when the first string ends with the second.",
)


def substring(value: Any, start: int, length: int | None = None) -> Any:
    """From a position counted from 1, or from the end when it is negative."""
    size = len(value)
    if length is not None and length < 0:
        return None
    begin = start - 1 if start > 0 else size + start if start < 0 else 0
    if begin >= size or (start < 0 and begin < 0):
        if begin >= size:
            return value[:0]
        return value[:0] if length is None or begin + length <= 0 else value[: begin + length]
    return value[begin:] if length is None else value[begin : begin + length]


def _substring_quick(frame: Any, args: list[Any], kinds: list[t.DataType], kind: t.DataType) -> Any:
    constant = all(isinstance(arg, pa.Scalar) and arg.is_valid for arg in args[1:])
    if constant and t.is_text(kinds[0]):
        numbers = [scalar_value(arg) for arg in args[1:]]
        if numbers[0] >= 1 and (len(numbers) == 1 or numbers[1] >= 0):
            stop = None if len(numbers) == 1 else numbers[0] - 1 + numbers[1]
            return pc.utf8_slice_codeunits(args[0], numbers[0] - 1, stop)
    return by_row(substring)(frame, args, kinds, kind)


define(
    "SUBSTRING",
    _S,
    ("string, int", "string, int, int", "bytes, int", "bytes, int, int"),
    _part_of_text,
    _substring_quick,
    "A part of the string, from a position on.",
    syntax="SUBSTRING(string FROM start [FOR length])",
    aliases=("SUBSTR",),
    null="always",
)
define(
    "REPLACE",
    _S,
    "string, string, string",
    t.STRING,
    by_row(lambda v, old, new: v.replace(old, new) if old else v),
    "The string with every occurrence of the second replaced by the third.",
)


def _regexp_extract(value: str, regex: str, group: int = 0) -> str | None:
    found = pattern(regex)
    if found is None or not 0 <= group <= found.groups:
        return None
    match = found.search(value)
    return None if match is None else match.group(group)


def _extract_column(frame: Any, args: list[Any], kinds: list[t.DataType], kind: t.DataType) -> Any:
    plain = not isinstance(args[0], pa.Scalar) and all(isinstance(arg, pa.Scalar) for arg in args[1:])
    constants = [scalar_value(arg) for arg in args[1:]] if plain else []
    named = None if not plain or None in constants else plain_regex.naming(*constants)
    if named is None:
        return by_row(_regexp_extract)(frame, args, kinds, kind)
    return pc.struct_field(pc.extract_regex(args[0], named), [0])


define(
    "REGEXP_EXTRACT",
    _S,
    ("string, string", "string, string, int"),
    t.STRING,
    _extract_column,
    "The match of the expression, or one of its groups.",
    null="always",
)


def _regexp_extract_all(value: str, regex: str, group: int = 1) -> tuple[str | None, ...] | None:
    found = pattern(regex)
    if found is None or not 0 <= group <= found.groups:
        return None
    return tuple(match.group(group) for match in found.finditer(value))


define(
    "REGEXP_EXTRACT_ALL",
    _S,
    ("string, string", "string, string, int"),
    t.ArrayType(t.STRING),
    by_row(_regexp_extract_all),
    "All matches of a group of the expression.",
    null="always",
)
define(
    "REGEXP",
    _S,
    "string, string",
    t.BOOLEAN,
    by_row(lambda v, r: bool(r) and (p := pattern(r)) is not None and p.search(v) is not None),
    "TRUE when some part of the string matches the expression.",
)
define(
    "REGEXP_COUNT",
    _S,
    "string, string",
    t.INT,
    by_row(lambda v, r: None if (p := pattern(r)) is None else sum(1 for _ in p.finditer(v))),
    "How often the expression matches.",
    null="always",
)
define(
    "REGEXP_INSTR",
    _S,
    "string, string",
    t.INT,
    by_row(lambda v, r: None if (p := pattern(r)) is None else 0 if (m := p.search(v)) is None else m.start() + 1),
    "Where the expression first matches; 0 when it does not.",
    null="always",
)
define(
    "REGEXP_SUBSTR",
    _S,
    "string, string",
    t.STRING,
    by_row(lambda v, r: None if (p := pattern(r)) is None or (m := p.search(v)) is None else m.group()),
    "The first match of the expression.",
    null="always",
)
define(
    "TRANSLATE",
    _S,
    "string, string, string",
    t.STRING,
    by_row(
        lambda v, old, new: "".join(new[i] if 0 <= (i := old.find(c)) < len(new) else "" if i >= 0 else c for c in v)
    ),
    "The string with characters replaced one by one.",
)
define(
    "INITCAP",
    _S,
    "string",
    _same_as_first,
    by_row(lambda v: re.sub(r"[^\W_]+", lambda m: m.group()[0].upper() + m.group()[1:].lower(), v)),
    "Every word with a capital first letter.",
)


def _pad(left: bool) -> Any:
    def pad(value: str, length: int, filler: str) -> str | None:
        if length < 0 or not filler:
            return None
        if length <= len(value):
            return value[:length]
        more = (filler * length)[: length - len(value)]
        return more + value if left else value + more

    return by_row(pad)


define(
    "LPAD",
    _S,
    "string, int, string",
    t.STRING,
    _pad(left=True),
    "The string, filled on the left to a length.",
)
define(
    "RPAD",
    _S,
    "string, int, string",
    t.STRING,
    _pad(left=False),
    "The string, filled on the right to a length.",
)


def _from_base64(value: str) -> str | None:
    try:
        return base64.b64decode(value).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return None


define("FROM_BASE64", _S, "string", t.STRING, by_row(_from_base64), "The string that base 64 stands for.")
define(
    "TO_BASE64",
    _S,
    "string",
    t.STRING,
    by_row(lambda v: base64.b64encode(v.encode()).decode()),
    "The string in base 64.",
)
define("ASCII", _S, "string", t.INT, by_row(lambda v: v.encode()[0] if v else 0), "The number of the first character.")
define(
    "CHR",
    _S,
    "bigint",
    t.STRING,
    by_row(lambda v: "" if v < 0 else chr(v & 0xFF)),
    "The character of a number.",
    null="always",
)


def _decode(value: bytes, charset: str) -> str | None:
    try:
        return bytes(value).decode(charset, "replace")
    except LookupError:
        return None


def _encode(value: str, charset: str) -> bytes | None:
    try:
        return value.encode("utf-16" if charset.upper() == "UTF-16" else charset, "replace")
    except LookupError:
        return None


define("DECODE", _S, "bytes, string", t.STRING, by_row(_decode), "Bytes as a string in a character set.")
define("ENCODE", _S, "string, string", t.BYTES, by_row(_encode), "A string as bytes in a character set.")
define(
    "INSTR",
    _S,
    "string, string",
    t.INT,
    by_row(lambda v, n: v.find(n) + 1),
    "Where the second string begins in the first; 0 when it does not.",
)
define(
    "LEFT",
    _S,
    "string, int",
    _part_of_text,
    by_row(lambda v, n: v[: max(n, 0)]),
    "The first characters.",
    null="always",
)
define(
    "RIGHT",
    _S,
    "string, int",
    _part_of_text,
    by_row(lambda v, n: v[-n:] if n > 0 else ""),
    "The last characters.",
    null="always",
)
define(
    "LOCATE",
    _S,
    ("string, string", "string, string, int"),
    t.INT,
    by_row(lambda n, v, s=1: v.find(n, max(s - 1, 0)) + 1),
    "Where the first string begins in the second, from a position on; 0 when it does not.",
)


def _url_decode(value: str) -> str | None:
    try:
        if re.search(r"%(?![0-9A-Fa-f]{2})", value):
            return None
        return unquote_plus(value, errors="strict")
    except UnicodeDecodeError:
        return None


define(
    "URL_DECODE",
    _S,
    "string",
    t.STRING,
    by_row(_url_decode),
    "The string that a URL-encoded one stands for.",
    null="always",
)
define(
    "URL_ENCODE",
    _S,
    "string",
    t.STRING,
    by_row(lambda v: quote_plus(v, safe="*-._")),
    "The string as part of a URL.",
    null="always",
)


def _parse_url(value: str, part: str, key: str | None = None) -> str | None:
    try:
        url = urlsplit(value)
        match part:
            case "HOST":
                return url.hostname and url.netloc.rpartition("@")[2].split(":")[0]
            case "PATH":
                return url.path
            case "QUERY":
                if key is None:
                    return url.query or None
                found = re.search(rf"(?:^|&){re.escape(key)}=([^&]*)", url.query)
                return None if found is None else found.group(1)
            case "REF":
                return url.fragment or None
            case "PROTOCOL":
                return url.scheme or None
            case "FILE":
                return url.path + (f"?{url.query}" if url.query else "")
            case "AUTHORITY":
                return url.netloc or None
            case "USERINFO":
                return url.netloc.rpartition("@")[0] or None
    except ValueError:
        return None
    return None


define(
    "PARSE_URL",
    _S,
    ("string, string", "string, string, string"),
    t.STRING,
    by_row(_parse_url),
    "A part of a URL: HOST, PATH, QUERY, REF, PROTOCOL, FILE, AUTHORITY or USERINFO.",
    null="always",
)
define("REVERSE", _S, "string", t.STRING, vectorized(pc.utf8_reverse), "The string backwards.", null="always")
define(
    "SPLIT",
    _S,
    "string, string",
    t.ArrayType(t.STRING),
    by_row(lambda v, d: tuple(v.split(d)) if d else tuple(v)),
    "The parts between the separators.",
)


def _split_index(value: str, separator: Any, index: int) -> str | None:
    if isinstance(separator, int):
        if separator <= 0:
            return None
        separator = chr(separator)
    parts = value.split(separator) if separator else [value]
    return parts[index] if 0 <= index < len(parts) else None


def _split_column(frame: Any, args: list[Any], kinds: list[t.DataType], kind: t.DataType) -> Any:
    value, separator, index = args
    plain = not isinstance(value, pa.Scalar) and isinstance(separator, pa.Scalar) and isinstance(index, pa.Scalar)
    sign, place = (scalar_value(separator), scalar_value(index)) if plain else (None, None)
    if not isinstance(sign, str) or not sign or place is None or place < 0:
        return by_row(_split_index)(frame, args, kinds, kind)
    parts = pc.split_pattern(value, sign, max_splits=place + 1)
    found = pc.fill_null(pc.greater(pc.list_value_length(parts), place), False).to_numpy(zero_copy_only=False)
    ends = parts.offsets.to_numpy()
    return parts.flatten().take(pa.array(ends[:-1] - ends[0] + place, mask=~found.astype(bool)))


define(
    "SPLIT_INDEX",
    _S,
    ("string, string, int", "string, int, int"),
    t.STRING,
    _split_column,
    "The part at an index, counted from 0, between the separators.",
    null="always",
)


def _str_to_map(value: str, pairs: str = ",", keys: str = "=") -> tuple[tuple[str, str | None], ...]:
    found: dict[str, str | None] = {}
    for part in re.split(pairs, value):
        mark = re.search(keys, part)
        found[part if mark is None else part[: mark.start()]] = None if mark is None else part[mark.end() :]
    return tuple(found.items())


define(
    "STR_TO_MAP",
    _S,
    ("string", "string, string, string"),
    t.MapType(t.STRING, t.STRING),
    by_row(_str_to_map),
    "A map from text such as k1=v1,k2=v2.",
    null="always",
)
define(
    "ELT",
    _S,
    "int, string...",
    _elt_type,
    by_row(lambda i, *parts: parts[i - 1] if i is not None and 1 <= i <= len(parts) else None, strict=False),
    "The string at an index, counted from 1.",
    null="always",
)


def _printf(template: str | None, *values: Any) -> str | None:
    if template is None:
        return None
    try:
        return re.sub(r"%n", "\n", template) % tuple("null" if v is None else v for v in values)
    except (TypeError, ValueError):
        return None


define(
    "PRINTF",
    _S,
    ("string", "string, any..."),
    t.STRING,
    by_row(_printf, strict=False),
    "Values written by a template, as in Java.",
    null="always",
)

_H = "hash"


def _hash(algorithm: str) -> Any:
    def digest(value: Any) -> str:
        data = value.encode() if isinstance(value, str) else value
        return hashlib.new(algorithm, data, usedforsecurity=False).hexdigest()

    return by_row(digest)


for _name, _size in (("MD5", 32), ("SHA1", 40), ("SHA224", 56), ("SHA256", 64), ("SHA384", 96), ("SHA512", 128)):
    define(
        _name, _H, "text or bytes", t.CharType(_size), _hash(_name.lower()), f"The {_name} hash in hexadecimal digits."
    )


def _sha2(value: str, bits: int) -> str:
    if bits not in (224, 256, 384, 512):
        msg = f"SHA2 has no {bits} bits"
        raise ValueError(msg)
    return hashlib.new(f"sha{bits}", value.encode(), usedforsecurity=False).hexdigest()


define(
    "SHA2",
    _H,
    "string, int",
    t.VarCharType(128),
    by_row(_sha2),
    "The SHA-2 hash of so many bits in hexadecimal digits.",
)


def _inet_aton(address: str) -> int | None:
    parts = address.split(".")
    if len(parts) > 4 or any(not _OCTET.fullmatch(part) or int(part) > 255 for part in parts):
        return None
    *heads, last = map(int, parts)
    return sum(part << 8 * (3 - place) for place, part in enumerate(heads)) + last


def _inet_ntoa(number: int) -> str | None:
    if not 0 <= number < 2**32:
        return None
    return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))


_OCTET = re.compile(r"[0-9]+")
define(
    "INET_ATON",
    _S,
    "string",
    t.BIGINT,
    by_row(_inet_aton),
    "An IPv4 address as a number; NULL when it is none. What is left out before the last part is 0.",
    null="always",
)
define(
    "INET_NTOA",
    _S,
    "bigint",
    t.STRING,
    by_row(_inet_ntoa),
    "A number as an IPv4 address; NULL when it is none.",
    null="always",
)
