"""Functions of VARIANT: parsing JSON text, and access to elements.

Promises: invalid JSON fails, or is NULL for TRY_PARSE_JSON; positions in arrays count from 1; a missing element is
NULL, and JSON's null is a value.
Does not know: how variants are stored."""

from __future__ import annotations

from millstream.sql.functions.registry import by_row, define
from millstream.sql.types import data_types as t
from millstream.sql.types.variants import Variant

_JSON = "json"
_SIGNATURES = ("string", "string, boolean")


def _parse(text: str, allow_duplicate_keys: bool = False) -> str:
    try:
        return Variant.parse_json(text, allow_duplicate_keys).text
    except ValueError as problem:
        msg = f"failed to parse JSON '{text:.100}': {problem}"
        raise ValueError(msg) from None


def _try_parse(text: str, allow_duplicate_keys: bool = False) -> str | None:
    try:
        return Variant.parse_json(text, allow_duplicate_keys).text
    except ValueError:
        return None


define(
    "PARSE_JSON", _JSON, _SIGNATURES, t.VARIANT, by_row(_parse),
    "Parses JSON text as a VARIANT. Fails if the text is not valid JSON, or if an object has duplicate "
    "keys and these are not allowed; if they are, the last one wins.",
    syntax="PARSE_JSON(text [, allow_duplicate_keys])",
)  # fmt: skip
define(
    "TRY_PARSE_JSON", _JSON, _SIGNATURES, t.VARIANT, by_row(_try_parse),
    "Parses JSON text as a VARIANT. Returns NULL if PARSE_JSON fails.", null="always",
    syntax="TRY_PARSE_JSON(text [, allow_duplicate_keys])",
)  # fmt: skip


def get_item(text: str, key: int | str) -> str | None:
    """Return the field of an object, or the element of an array, counted from 1; None if there is none."""
    variant = Variant(text)
    is_key = isinstance(key, str)
    if not (variant.is_object() if is_key else variant.is_array()):
        problem = "only an OBJECT can be accessed by key" if is_key else "only an ARRAY can be accessed by index"
        msg = f"{problem}, but the variant is of type {variant.get_type()}"
        raise ValueError(msg)
    item = variant.get_field(key) if isinstance(key, str) else variant.get_element(key - 1)
    return None if item is None else item.text
