"""Hash functions of strings and bytes.

Promises: a hash is formatted in lower-case hexadecimal digits.
Does not know: the hashes that partition keys."""

from __future__ import annotations

import hashlib
from typing import Any

from millstream.sql.functions.registry import by_row, define
from millstream.sql.types import data_types as t

_HASH = "hash"


def _hash(algorithm: str) -> Any:
    def digest(value: Any) -> str:
        data = value.encode() if isinstance(value, str) else value
        return hashlib.new(algorithm, data, usedforsecurity=False).hexdigest()

    return by_row(digest)


for _name, _size in (("MD5", 32), ("SHA1", 40), ("SHA224", 56), ("SHA256", 64), ("SHA384", 96), ("SHA512", 128)):
    define(
        _name,
        _HASH,
        "text or bytes",
        t.CharType(_size),
        _hash(_name.lower()),
        f"Returns the {_name} hash of the argument in hexadecimal digits.",
    )


def _sha2(value: str, bits: int) -> str:
    if bits not in (224, 256, 384, 512):
        msg = f"SHA2 has no hash of {bits} bits; use 224, 256, 384 or 512"
        raise ValueError(msg)
    return hashlib.new(f"sha{bits}", value.encode(), usedforsecurity=False).hexdigest()


define(
    "SHA2",
    _HASH,
    "string, int",
    t.VarCharType(128),
    by_row(_sha2),
    "Returns the SHA-2 hash of the string in hexadecimal digits. The second argument is the number of "
    "bits: 224, 256, 384 or 512.",
)
