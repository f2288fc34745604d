"""Encodings of strings: Base64, character sets, URLs and IP addresses.

Promises: a string that is not valid in its encoding is decoded to NULL.
Does not know: hash functions."""

from __future__ import annotations

import base64
import binascii
import codecs
import re
from urllib.parse import quote_plus, unquote_plus, urlsplit

from millstream.sql.functions.registry import by_row, define
from millstream.sql.types import data_types as t

_STRING = "string"


def _from_base64(value: str) -> str | None:
    try:
        return base64.b64decode(value).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return None


define("FROM_BASE64", _STRING, "string", t.STRING, by_row(_from_base64), "Decodes a string from Base64.")
define(
    "TO_BASE64",
    _STRING,
    "string",
    t.STRING,
    by_row(lambda v: base64.b64encode(v.encode()).decode()),
    "Encodes the string in Base64.",
)
define(
    "ASCII",
    _STRING,
    "string",
    t.INT,
    by_row(lambda v: v.encode()[0] if v else 0),
    "Returns the value of the first byte of the string in UTF-8, or 0 if the string is empty.",
)
define(
    "CHR",
    _STRING,
    "bigint",
    t.STRING,
    by_row(lambda v: "" if v < 0 else chr(v & 0xFF)),
    "Returns the character with the code n modulo 256, or an empty string if n is negative.",
    null="always",
)


def _decode(value: bytes, charset: str) -> str | None:
    try:
        return bytes(value).decode(charset, "replace")
    except LookupError:
        return None


def _encode(value: str, charset: str) -> bytes | None:
    if charset.upper() == "UTF-16":  # as Java writes it: big-endian with a byte order mark
        return codecs.BOM_UTF16_BE + value.encode("utf-16-be", "replace") if value else b""
    try:
        return value.encode(charset, "replace")
    except LookupError:
        return None


define("DECODE", _STRING, "bytes, string", t.STRING, by_row(_decode), "Decodes bytes to a string in the character set.")
define("ENCODE", _STRING, "string, string", t.BYTES, by_row(_encode), "Encodes a string to bytes in the character set.")


def _url_decode(value: str) -> str | None:
    try:
        if re.search(r"%(?![0-9A-Fa-f]{2})", value):
            return None
        return unquote_plus(value, errors="strict")
    except UnicodeDecodeError:
        return None


define(
    "URL_DECODE",
    _STRING,
    "string",
    t.STRING,
    by_row(_url_decode),
    "Decodes a URL-encoded string. Returns NULL if it is not valid.",
    null="always",
)
define(
    "URL_ENCODE",
    _STRING,
    "string",
    t.STRING,
    by_row(lambda v: quote_plus(v, safe="*-._")),
    "Encodes the string for use in a URL.",
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
                parameter = re.search(rf"(?:^|&){re.escape(key)}=([^&]*)", url.query)
                return None if parameter is None else parameter.group(1)
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
    _STRING,
    ("string, string", "string, string, string"),
    t.STRING,
    by_row(_parse_url),
    "Returns a part of a URL: HOST, PATH, QUERY, REF, PROTOCOL, FILE, AUTHORITY or USERINFO. With QUERY, "
    "the third argument names a parameter.",
    null="always",
)


def _inet_aton(address: str) -> int | None:
    parts = address.split(".")
    if len(parts) > 4 or any(not _OCTET.fullmatch(part) or int(part) > 255 for part in parts):
        return None
    *heads, last = map(int, parts)
    return sum(part << 8 * (3 - index) for index, part in enumerate(heads)) + last


def _inet_ntoa(number: int) -> str | None:
    if not 0 <= number < 2**32:
        return None
    return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))


_OCTET = re.compile(r"[0-9]+")
define(
    "INET_ATON",
    _STRING,
    "string",
    t.BIGINT,
    by_row(_inet_aton),
    "Converts an IPv4 address to an integer. Parts that are left out before the last one are 0. Returns "
    "NULL if the string is not an address.",
    null="always",
)
define(
    "INET_NTOA",
    _STRING,
    "bigint",
    t.STRING,
    by_row(_inet_ntoa),
    "Converts an integer to an IPv4 address. Returns NULL if it is out of range.",
    null="always",
)
