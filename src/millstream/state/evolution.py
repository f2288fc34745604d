"""Written type x declared type: how state of the one becomes state of the other.

Promises: fields are matched by name; one may be added with a default, dropped, moved, renamed and made wider; so may
parts of lists, maps and records within records. A time to live may be switched on and off. What cannot be read as
declared is refused with both types, never guessed at. A key keeps its value, or is refused.
Does not know: files, tables' names, operators."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from millstream.errors import UserError
from millstream.types.composite_types import KIND_FIELD, RowTypeInfo, StructTypeInfo, TupleTypeInfo
from millstream.types.evolution import default_of, former_names
from millstream.types.factory import ListTypeInfo, MapTypeInfo, TypeInformation, Types
from millstream.types.type_information import UnknownType

Convert = Callable[[pa.Array, int], pa.Array]  # the array as written, and the time that new timestamps get

_OBJECTS = "PICKLED_BYTE_ARRAY"
_WHOLE = ("BYTE", "SHORT", "INT", "LONG")
_WIDER: dict[str, frozenset[str]] = {
    **{
        kind: frozenset((*_WHOLE[place + 1 :], "FLOAT", "DOUBLE", "BIG_INT", "BIG_DEC"))
        for place, kind in enumerate(_WHOLE)
    },
    "FLOAT": frozenset(("DOUBLE",)),
    "BIG_INT": frozenset(("BIG_DEC",)),
    "CHAR": frozenset(("STRING",)),
    "SQL_DATE": frozenset(("LOCAL_DATE",)),
    "SQL_TIME": frozenset(("LOCAL_TIME",)),
    "SQL_TIMESTAMP": frozenset(("LOCAL_DATE_TIME",)),
}
_SEQUENCES = frozenset(("LIST", "OBJECT_ARRAY", "BASIC_ARRAY", "PRIMITIVE_ARRAY"))
_NAMED = frozenset(("ROW", "NAMED_TUPLE", "DATACLASS"))


class Unresolvable(UserError):
    """Something written as one type cannot be read as another."""

    def __init__(self, path: Sequence[str], written: str, declared: str, reason: str) -> None:
        self.path, self.written, self.declared, self.reason = tuple(path), written, declared, reason
        where = f"field {'.'.join(path)}: " if path else ""
        super().__init__(f"{where}written as {written}, declared as {declared}: {reason}")


@dataclass(frozen=True, slots=True)
class Resolution:
    """How written arrays become declared ones: `convert` is None where they are read as they are."""

    convert: Convert | None = None
    notes: tuple[str, ...] = ()

    def __call__(self, array: pa.Array, now: int) -> pa.Array:
        """The array in the declared layout."""
        return array if self.convert is None else self.convert(array, now)


SAME = Resolution()


def resolve(written: Mapping[str, Any], declared: TypeInformation, path: tuple[str, ...] = ()) -> Resolution:
    """How values written as one type are read as another; `Unresolvable` if they cannot be."""
    if written == declared.to_json():
        return SAME
    old, new = str(written["type"]), str(declared.to_json()["type"])
    if old == _OBJECTS or new == _OBJECTS:
        source = _type(written, declared, path)
        notes = () if old == new else (_note(path, f"{source} is read as {declared}"),)
        return Resolution(lambda array, _: declared.to_arrow(source.from_arrow(array)), notes)
    if new in _WIDER.get(old, ()):
        return Resolution(_widen(_type(written, declared, path), declared), (_note(path, f"{old} becomes {new}"),))
    if old in _SEQUENCES and new in _SEQUENCES:
        return _sequence(written, declared, path)
    if isinstance(declared, MapTypeInfo) and old == "MAP":
        return _map(written, declared, path)
    if isinstance(declared, TupleTypeInfo) and old == "TUPLE":
        return _tuple(written, declared, path)
    if isinstance(declared, StructTypeInfo) and old in _NAMED and new in _NAMED:
        return _struct(written, declared, path)
    narrower = old in _WIDER.get(new, ())
    raise Unresolvable(
        path, _text(written), str(declared), "it may not fit" if narrower else "there is no way from one to the other"
    )


def resolve_key(written: Mapping[str, Any], declared: TypeInformation) -> Resolution:
    """How keys are read: as the values they were, or not at all, for a key's place depends on its value."""
    if written == declared.to_json():
        return SAME
    old, new = str(written["type"]), str(declared.to_json()["type"])
    source = _type(written, declared, ())
    if old in _WHOLE and new in (*_WHOLE, "BIG_INT") and (new in _WIDER[old]):
        return Resolution(_widen(source, declared))
    if _OBJECTS in (old, new):

        def same_values(array: pa.Array, _: int) -> pa.Array:
            values = source.from_arrow(array)
            if declared.conform(values) != values:
                raise Unresolvable((), str(source), str(declared), "the keys are of another type")
            return declared.to_arrow(values)

        return Resolution(same_values)
    with suppress(Unresolvable):
        if resolve(written, declared) == SAME:  # the same fields under another class name
            return SAME
    raise Unresolvable((), _text(written), str(declared), "the type of a key cannot change")


# -------------------------------------------------------------------------------------------------------- time to live


def stamped(kind: TypeInformation, shape: str) -> TypeInformation:
    """The type of what is stored with a time to live: each value, element or entry beside its time."""
    if shape == "list" and isinstance(kind, ListTypeInfo):
        return Types.LIST(Types.TUPLE([kind.elem_type, Types.LONG()]))
    if shape == "map" and isinstance(kind, MapTypeInfo):
        return Types.MAP(kind.key_type, Types.TUPLE([kind.value_type, Types.LONG()]))
    return Types.TUPLE([kind, Types.LONG()])


def unstamped(kind: Mapping[str, Any], shape: str) -> Mapping[str, Any]:
    """The inverse of `stamped`, on a type's description."""
    if shape == "list":
        return {**kind, "element": kind["element"]["fields"][0]}
    if shape == "map":
        return {**kind, "value": kind["value"]["fields"][0]}
    inner: Mapping[str, Any] = kind["fields"][0]
    return inner


def resolve_stored(
    written: Mapping[str, Any], declared: TypeInformation, shape: str, *, had_ttl: bool, has_ttl: bool
) -> Resolution:
    """`resolve` for what a table stores, whose time to live may have been switched on or off."""
    if had_ttl == has_ttl:
        return resolve(written, declared)
    if had_ttl:
        inner = resolve(unstamped(written, shape), declared)

        def strip(array: pa.Array, now: int) -> pa.Array:
            return inner(without_times(array, shape), now)

        return Resolution(strip, (*inner.notes, "the time to live is switched off"))
    plain = TypeInformation.type_from_json(dict(unstamped(declared.to_json(), shape)))
    inner = resolve(written, plain)

    def stamp(array: pa.Array, now: int) -> pa.Array:
        return _with_times(inner(array, now), shape, now)

    return Resolution(stamp, (*inner.notes, "the time to live is switched on, from now"))


def without_times(array: pa.Array, shape: str, *, times: bool = False) -> pa.Array:
    """The values of an array of stored pairs; with `times`, their times."""
    part = 1 if times else 0
    if shape == "list":
        return _rebuilt_list(array, array.values.field(part))
    if shape == "map":
        return _rebuilt_map(array, array.keys, array.items.field(part))
    return array.field(part)


def _with_times(array: pa.Array, shape: str, now: int) -> pa.Array:
    def pairs(values: pa.Array) -> pa.Array:
        times = pa.array([now] * len(values), pa.int64())
        return pa.StructArray.from_arrays([values, times], names=["f0", "f1"])

    if shape == "list":
        return _rebuilt_list(array, pairs(array.values))
    if shape == "map":
        return _rebuilt_map(array, array.keys, pairs(array.items))
    return pairs(array)


# ---------------------------------------------------------------------------------------------------------- composites


def _sequence(written: Mapping[str, Any], declared: Any, path: tuple[str, ...]) -> Resolution:
    inner = resolve(written["element"], declared.elem_type, (*path, "element"))
    if inner.convert is None:
        return inner
    return Resolution(lambda array, now: _rebuilt_list(array, inner(array.values, now)), inner.notes)


def _map(written: Mapping[str, Any], declared: MapTypeInfo, path: tuple[str, ...]) -> Resolution:
    try:
        keys = resolve_key(written["key"], declared.key_type)
    except Unresolvable as problem:
        raise Unresolvable((*path, "key"), problem.written, problem.declared, problem.reason) from None
    values = resolve(written["value"], declared.value_type, (*path, "value"))
    if keys.convert is None and values.convert is None:
        return values
    return Resolution(
        lambda array, now: _rebuilt_map(array, keys(array.keys, now), values(array.items, now)), values.notes
    )


def _tuple(written: Mapping[str, Any], declared: TupleTypeInfo, path: tuple[str, ...]) -> Resolution:
    if len(written["fields"]) != len(declared.field_types):
        raise Unresolvable(path, _text(written), str(declared), "a tuple has no names to tell its fields by")
    parts = [
        resolve(old, new, (*path, f"f{place}"))
        for place, (old, new) in enumerate(zip(written["fields"], declared.field_types, strict=True))
    ]
    return _records(declared, [(place, part) for place, part in enumerate(parts)], ())


def _struct(written: Mapping[str, Any], declared: StructTypeInfo, path: tuple[str, ...]) -> Resolution:
    names = list(written.get("names") or (f"f{place}" for place in range(len(written["fields"]))))
    old_types = dict(zip(names, written["fields"], strict=True))
    renamed = former_names(declared)
    sources: list[tuple[int | None, Resolution]] = []
    notes: list[str] = []
    taken: set[str] = set()
    for name, kind in zip(declared.field_names, declared.field_types, strict=True):
        found = name if name in old_types else next((each for each in renamed.get(name, ()) if each in old_types), None)
        if found is None:
            known, value = default_of(declared, name)
            if not known:
                reason = f"the field '{name}' is new and has no default"
                raise Unresolvable((*path, name), "nothing", str(kind), reason)
            shown = "its default" if callable(value) else repr(value)
            notes.append(_note((*path, name), f"is new, {shown}"))
            sources.append((None, Resolution(_defaults(kind, value))))
            continue
        if found != name:
            notes.append(_note((*path, name), f"was called {found}"))
        taken.add(found)
        sources.append((names.index(found), resolve(old_types[found], kind, (*path, name))))
    notes += [_note((*path, name), "is dropped") for name in names if name not in taken]
    if [name for name in names if name in taken] != [name for name in declared.field_names if name in names]:
        notes += [] if notes else [_note(path, "fields are in another order")]
    return _records(declared, sources, tuple(notes))


def _records(
    declared: StructTypeInfo, sources: Sequence[tuple[int | None, Resolution]], notes: tuple[str, ...]
) -> Resolution:
    """Records put together from the fields of the written ones, or from what makes a new field."""
    notes = (*notes, *(note for _, part in sources for note in part.notes))
    if all(place == at and part.convert is None for place, (at, part) in enumerate(sources)):
        return Resolution(None, notes)  # what follows the declared fields is not looked at
    fields = list(declared.arrow_type)

    def rebuild(array: pa.Array, now: int) -> pa.Array:
        arrays = []
        for at, part in sources:
            column = pa.nulls(len(array)) if at is None else array.field(at)
            arrays.append(part(column, now))
        if isinstance(declared, RowTypeInfo):
            kinds = array.type.get_field_index(KIND_FIELD)
            arrays.append(array.field(kinds) if kinds >= 0 else pa.nulls(len(array), pa.int8()))
        missing = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=missing)

    return Resolution(rebuild, notes)


def _defaults(kind: TypeInformation, value: Any) -> Convert:
    def fill(array: pa.Array, _: int) -> pa.Array:
        return kind.to_arrow([value() if callable(value) else value for _ in range(len(array))])

    return fill


def _widen(source: TypeInformation, declared: TypeInformation) -> Convert:
    numbers = pa.types.is_integer(declared.arrow_type) or pa.types.is_floating(declared.arrow_type)
    if numbers:
        return lambda array, _: pc.cast(array, declared.arrow_type, safe=False)
    return lambda array, _: declared.to_arrow(source.from_arrow(array))


def _rebuilt_list(array: pa.Array, values: pa.Array) -> pa.Array:
    """The lists of an array with other elements at the same places; lists that are missing stay missing."""
    missing = array.is_null() if array.null_count else None
    return pa.ListArray.from_arrays(array.offsets, values, type=pa.list_(values.type), mask=missing)


def _rebuilt_map(array: pa.Array, keys: pa.Array, items: pa.Array) -> pa.Array:
    starts = array.offsets
    if array.null_count:
        valid = pa.concat_arrays([array.is_valid(), pa.array([True])])
        starts = pc.if_else(valid, starts, pa.scalar(None, pa.int32()))
    return pa.MapArray.from_arrays(starts, keys, items, type=pa.map_(keys.type, items.type))


# ------------------------------------------------------------------------------------------------------------- classes


def without_classes(written: Mapping[str, Any]) -> dict[str, Any]:
    """The description of a type with rows in place of records of classes."""

    def plain(part: Any) -> Any:
        if isinstance(part, Mapping):
            made = {name: plain(each) for name, each in part.items() if name != "class"}
            return {**made, "type": "ROW"} if "class" in part else made
        return [plain(each) for each in part] if isinstance(part, list) else part

    found: dict[str, Any] = plain(written)
    return found


def classes_in(kind: Any) -> Iterator[type]:
    """The classes whose instances a type holds."""
    if isinstance(kind, TypeInformation):
        if isinstance(cls := getattr(kind, "cls", None), type):
            yield cls
        for name in ("field_types", "elem_type", "key_type", "value_type"):
            yield from classes_in(getattr(kind, name, None))
    elif isinstance(kind, list):
        for each in kind:
            yield from classes_in(each)


# --------------------------------------------------------------------------------------------------------------- words


def _type(written: Mapping[str, Any], declared: TypeInformation, path: tuple[str, ...]) -> TypeInformation:
    try:
        return TypeInformation.type_from_json(dict(written))
    except UnknownType:
        reason = "this release does not know the written type"
        raise Unresolvable(path, json.dumps(written), str(declared), reason) from None


def _text(written: Mapping[str, Any]) -> str:
    try:
        return str(TypeInformation.type_from_json(dict(written)))
    except UnknownType:
        return json.dumps(written)


def _note(path: Sequence[str], text: str) -> str:
    return f"{'.'.join(path)} {text}" if path else text
