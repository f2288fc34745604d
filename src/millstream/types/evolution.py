"""Schema evolution of record types: former names of fields, and defaults of new fields.

Promises: former names come from `renamed_from` in the metadata of a dataclass field, or from `renamed`. Defaults are
those of the dataclass or named tuple, and None in a row.
Does not know: state, and how old records are read."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from millstream.errors import UserError
from millstream.types.composite_types import DataclassTypeInfo, NamedTupleTypeInfo, RowTypeInfo, StructTypeInfo

RENAMED_FROM = "renamed_from"
_FORMER_NAMES_ATTRIBUTE = "_former_names"

T = TypeVar("T", bound=StructTypeInfo)


class NoSuchField(UserError):
    """A renamed field does not exist in the type."""

    def __init__(self, name: str, type_info: StructTypeInfo) -> None:
        super().__init__(f"{type_info} has no field '{name}'", hint="map the new name of a field to its old one")


def renamed(type_info: T, names: Mapping[str, str | Sequence[str]]) -> T:
    """Declare the names that fields had when older state was written.

    A dataclass can declare them itself: `field(metadata={"renamed_from": "old"})`.

    Args:
        type_info: The type with the new names.
        names: The old name, or names, of a field by its new name.

    Returns:
        A copy of the type with this information.

    Raises:
        NoSuchField: If the type has no field of a new name.

    """
    for name in names:
        if name not in type_info.field_names:
            raise NoSuchField(name, type_info)
    copied = copy.copy(type_info)
    setattr(copied, _FORMER_NAMES_ATTRIBUTE, {name: _to_tuple(old) for name, old in names.items()})
    return copied


def read_former_names(type_info: StructTypeInfo) -> dict[str, tuple[str, ...]]:
    """Return the old names of each renamed field, the latest first."""
    names: dict[str, tuple[str, ...]] = dict(getattr(type_info, _FORMER_NAMES_ATTRIBUTE, {}))
    if isinstance(type_info, DataclassTypeInfo):
        for field in dataclasses.fields(type_info.cls):
            if RENAMED_FROM in field.metadata:
                names.setdefault(field.name, _to_tuple(field.metadata[RENAMED_FROM]))
    return names


def find_default(type_info: StructTypeInfo, name: str) -> tuple[bool, Any]:
    """Return whether a field has a default, and the default or its factory."""
    if isinstance(type_info, RowTypeInfo):
        return True, None
    if isinstance(type_info, NamedTupleTypeInfo):
        defaults: Mapping[str, Any] = type_info.cls._field_defaults  # type: ignore[attr-defined]
        return name in defaults, defaults.get(name)
    if isinstance(type_info, DataclassTypeInfo):
        field = next(field for field in dataclasses.fields(type_info.cls) if field.name == name)
        if field.default is not dataclasses.MISSING:
            return True, field.default
        if field.default_factory is not dataclasses.MISSING:
            return True, field.default_factory
    return False, None


def _to_tuple(old: str | Sequence[str]) -> tuple[str, ...]:
    return (old,) if isinstance(old, str) else tuple(old)
