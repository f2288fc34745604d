"""Functions of VARIANT: parsing JSON text, and access to elements.

Promises: invalid JSON fails, or is NULL for TRY_PARSE_JSON; positions in arrays count from 1; a missing element is
NULL, and JSON's null is a value.
Does not know: how variants are stored."""

from __future__ import annotations

from millstream.sql.functions.registry import by_row, define
from millstream.sql.types import data_types as t
from millstream.sql.types.variants import Variant

_J = "json"
_SIGNATURES = ("string", "string, boolean")


def _parse(text: str, duplicates: bool = False) -> str:
    try:
        return Variant.parse_json(text, duplicates).text
    except ValueError as problem:
        msg = f"failed to parse JSON '{text:.100}': {problem}"
        raise ValueError(msg) from None


def _try_parse(text: str, duplicates: bool = False) -> str | None:
    try:
        return Variant.parse_json(text, duplicates).text
    except ValueError:
        return None


define(
    "PARSE_JSON", _J, _SIGNATURES, t.VARIANT, by_row(_parse),
    "Parses JSON text as a VARIANT. Fails if the text is not valid JSON, or if an object has duplicate "
    "keys and these are not allowed; if they are, the last one wins.",
    syntax="PARSE_JSON(text [, allow_duplicate_keys])",
)  # fmt: skip
define(
    "TRY_PARSE_JSON", _J, _SIGNATURES, t.VARIANT, by_row(_try_parse),
    "Parses JSON text as a VARIANT. Returns NULL if PARSE_JSON fails.", null="always",
    syntax="TRY_PARSE_JSON(text [, allow_duplicate_keys])",
)  # fmt: skip


def item(variant: str, key: int | str) -> str | None:
    """The field of an object, or the element of an array, from 1; None where there is none."""
    whole = Variant(variant)
    if not (whole.is_object() if isinstance(key, str) else whole.is_array()):
        needed = (
            "a key needs a variant that is an object" if isinstance(key, str) else "an index needs one that is an array"
        )
        msg = f"{needed}, this one is of kind {whole.get_type()}"
        raise ValueError(msg)
    result = whole.get_field(key) if isinstance(key, str) else whole.get_element(key - 1)
    return None if result is None else result.text
