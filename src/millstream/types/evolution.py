"""What a record type says of its past: the names its fields had, and what a new field holds in old records.

Promises: former names come from `renamed_from` in a dataclass field's metadata, or from `renamed`; defaults are those
of the dataclass or named tuple, None in a row.
Does not know: state, or how old records are read."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from millstream.errors import UserError
from millstream.types.composite_types import DataclassTypeInfo, NamedTupleTypeInfo, RowTypeInfo, StructTypeInfo

RENAMED_FROM = "renamed_from"
_FORMER = "_former_names"

T = TypeVar("T", bound=StructTypeInfo)


class NoSuchField(UserError):
    """A field was said to be renamed that the type does not have."""

    def __init__(self, name: str, kind: StructTypeInfo) -> None:
        super().__init__(f"{kind} has no field '{name}'", hint="map the new name of a field to its old one")


def renamed(type_info: T, names: Mapping[str, str | Sequence[str]]) -> T:
    """The type, knowing what its fields were called when older state was written: {new name: old name or names}.

    A dataclass may say it itself: `field(metadata={"renamed_from": "old"})`."""
    for name in names:
        if name not in type_info.field_names:
            raise NoSuchField(name, type_info)
    made = copy.copy(type_info)
    setattr(made, _FORMER, {name: _names(old) for name, old in names.items()})
    return made


def former_names(type_info: StructTypeInfo) -> dict[str, tuple[str, ...]]:
    """The old names of each renamed field, the latest first."""
    found: dict[str, tuple[str, ...]] = dict(getattr(type_info, _FORMER, {}))
    if isinstance(type_info, DataclassTypeInfo):
        for each in dataclasses.fields(type_info.cls):
            if RENAMED_FROM in each.metadata:
                found.setdefault(each.name, _names(each.metadata[RENAMED_FROM]))
    return found


def default_of(type_info: StructTypeInfo, name: str) -> tuple[bool, Any]:
    """Whether a field has a default, and the default or what makes it."""
    if isinstance(type_info, RowTypeInfo):
        return True, None
    if isinstance(type_info, NamedTupleTypeInfo):
        defaults: Mapping[str, Any] = type_info.cls._field_defaults  # type: ignore[attr-defined]
        return name in defaults, defaults.get(name)
    if isinstance(type_info, DataclassTypeInfo):
        found = next(each for each in dataclasses.fields(type_info.cls) if each.name == name)
        if found.default is not dataclasses.MISSING:
            return True, found.default
        if found.default_factory is not dataclasses.MISSING:
            return True, found.default_factory
    return False, None


def _names(old: str | Sequence[str]) -> tuple[str, ...]:
    return (old,) if isinstance(old, str) else tuple(old)
