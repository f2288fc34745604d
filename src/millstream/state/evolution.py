"""State schema evolution: converts state from the type it was written with to the type that the program declares.

Promises: fields are matched by name. A field can be added with a default, dropped, moved, renamed and widened, also
inside lists, maps and nested records. A time to live can be enabled and disabled. Any other change raises an error that
names both types. Keys are converted only if their values stay equal.
Does not know: state files, names of tables, operators."""

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
from millstream.types.evolution import find_default, read_former_names
from millstream.types.factory import ListTypeInfo, MapTypeInfo, TypeInformation, Types
from millstream.types.type_information import UnknownType

Convert = Callable[[pa.Array, int], pa.Array]  # from the written array and the current time, for new timestamps

_OBJECTS = "PICKLED_BYTE_ARRAY"
_INTEGERS = ("BYTE", "SHORT", "INT", "LONG")
_WIDER: dict[str, frozenset[str]] = {
    **{
        name: frozenset((*_INTEGERS[index + 1 :], "FLOAT", "DOUBLE", "BIG_INT", "BIG_DEC"))
        for index, name in enumerate(_INTEGERS)
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
    """State that was written with one type cannot be converted to another."""

    def __init__(self, path: Sequence[str], written: str, declared: str, reason: str) -> None:
        self.path, self.written, self.declared, self.reason = tuple(path), written, declared, reason
        where = f"field {'.'.join(path)}: " if path else ""
        super().__init__(f"{where}written as {written}, declared as {declared}: {reason}")


@dataclass(frozen=True, slots=True)
class Resolution:
    """How written arrays are converted to the declared type; `convert` is None if they do not change.

    `notes` describe the conversion for users, such as a field that is new."""

    convert: Convert | None = None
    notes: tuple[str, ...] = ()

    def __call__(self, array: pa.Array, now: int) -> pa.Array:
        """Convert an array."""
        return array if self.convert is None else self.convert(array, now)


SAME = Resolution()


def resolve(written: Mapping[str, Any], declared: TypeInformation, path: tuple[str, ...] = ()) -> Resolution:
    """Return how written values are converted to the declared type; raises `Unresolvable` if they cannot be."""
    if written == declared.to_json():
        return SAME
    old, new = str(written["type"]), str(declared.to_json()["type"])
    if old == _OBJECTS or new == _OBJECTS:
        source = _parse_type(written, declared, path)
        notes = () if old == new else (_note(path, f"{source} is read as {declared}"),)
        return Resolution(lambda array, _: declared.to_arrow(source.from_arrow(array)), notes)
    if new in _WIDER.get(old, ()):
        return Resolution(
            _widen(_parse_type(written, declared, path), declared), (_note(path, f"{old} becomes {new}"),)
        )
    if old in _SEQUENCES and new in _SEQUENCES:
        return _resolve_sequence(written, declared, path)
    if isinstance(declared, MapTypeInfo) and old == "MAP":
        return _resolve_map(written, declared, path)
    if isinstance(declared, TupleTypeInfo) and old == "TUPLE":
        return _resolve_tuple(written, declared, path)
    if isinstance(declared, StructTypeInfo) and old in _NAMED and new in _NAMED:
        return _resolve_struct(written, declared, path)
    is_narrower = old in _WIDER.get(new, ())
    reason = "values may not fit the narrower type" if is_narrower else "there is no conversion between these types"
    raise Unresolvable(path, _format_type(written), str(declared), reason)


def resolve_key(written: Mapping[str, Any], declared: TypeInformation) -> Resolution:
    """Return how keys are converted. Their values must stay equal, because the key group depends on the value."""
    if written == declared.to_json():
        return SAME
    old, new = str(written["type"]), str(declared.to_json()["type"])
    source = _parse_type(written, declared, ())
    if old in _INTEGERS and new in (*_INTEGERS, "BIG_INT") and (new in _WIDER[old]):
        return Resolution(_widen(source, declared))
    if _OBJECTS in (old, new):

        def convert_equal(array: pa.Array, _: int) -> pa.Array:
            values = source.from_arrow(array)
            if declared.conform(values) != values:
                raise Unresolvable((), str(source), str(declared), "the declared type changes the values of keys")
            return declared.to_arrow(values)

        return Resolution(convert_equal)
    with suppress(Unresolvable):
        if resolve(written, declared) == SAME:  # the same fields under another class name
            return SAME
    raise Unresolvable((), _format_type(written), str(declared), "the type of a key cannot change")


# -------------------------------------------------------------------------------------------------------- time to live


def to_timed_type(type_info: TypeInformation, kind: str) -> TypeInformation:
    """Return the stored type of a state with a time to live: each value, element or map entry with its timestamp.

    `kind` is the kind of state, such as "list"; see `millstream.state.views.state_kind`."""
    if kind == "list" and isinstance(type_info, ListTypeInfo):
        return Types.LIST(Types.TUPLE([type_info.elem_type, Types.LONG()]))
    if kind == "map" and isinstance(type_info, MapTypeInfo):
        return Types.MAP(type_info.key_type, Types.TUPLE([type_info.value_type, Types.LONG()]))
    return Types.TUPLE([type_info, Types.LONG()])


def from_timed_type(stored: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """Invert `to_timed_type`, on the JSON form of types."""
    if kind == "list":
        return {**stored, "element": stored["element"]["fields"][0]}
    if kind == "map":
        return {**stored, "value": stored["value"]["fields"][0]}
    inner: Mapping[str, Any] = stored["fields"][0]
    return inner


def resolve_stored(
    written: Mapping[str, Any], declared: TypeInformation, kind: str, *, had_ttl: bool, has_ttl: bool
) -> Resolution:
    """Resolve stored values as `resolve` does; their time to live may have been enabled or disabled."""
    if had_ttl == has_ttl:
        return resolve(written, declared)
    if had_ttl:
        inner = resolve(from_timed_type(written, kind), declared)

        def strip(array: pa.Array, now: int) -> pa.Array:
            return inner(read_timed(array, kind), now)

        return Resolution(strip, (*inner.notes, "the time to live is disabled"))
    untimed = TypeInformation.type_from_json(dict(from_timed_type(declared.to_json(), kind)))
    inner = resolve(written, untimed)

    def add_times(array: pa.Array, now: int) -> pa.Array:
        return _add_times(inner(array, now), kind, now)

    return Resolution(add_times, (*inner.notes, "the time to live is enabled and begins now"))


def read_timed(array: pa.Array, kind: str, *, times: bool = False) -> pa.Array:
    """Return the values of an array of `to_timed_type`; with `times`, their timestamps."""
    field = 1 if times else 0
    if kind == "list":
        return _replace_elements(array, array.values.field(field))
    if kind == "map":
        return _replace_entries(array, array.keys, array.items.field(field))
    return array.field(field)


def _add_times(array: pa.Array, kind: str, now: int) -> pa.Array:
    def pairs(values: pa.Array) -> pa.Array:
        times = pa.array([now] * len(values), pa.int64())
        return pa.StructArray.from_arrays([values, times], names=["f0", "f1"])

    if kind == "list":
        return _replace_elements(array, pairs(array.values))
    if kind == "map":
        return _replace_entries(array, array.keys, pairs(array.items))
    return pairs(array)


# ---------------------------------------------------------------------------------------------------------- composites


def _resolve_sequence(written: Mapping[str, Any], declared: Any, path: tuple[str, ...]) -> Resolution:
    inner = resolve(written["element"], declared.elem_type, (*path, "element"))
    if inner.convert is None:
        return inner
    return Resolution(lambda array, now: _replace_elements(array, inner(array.values, now)), inner.notes)


def _resolve_map(written: Mapping[str, Any], declared: MapTypeInfo, path: tuple[str, ...]) -> Resolution:
    try:
        keys = resolve_key(written["key"], declared.key_type)
    except Unresolvable as problem:
        raise Unresolvable((*path, "key"), problem.written, problem.declared, problem.reason) from None
    values = resolve(written["value"], declared.value_type, (*path, "value"))
    if keys.convert is None and values.convert is None:
        return values
    return Resolution(
        lambda array, now: _replace_entries(array, keys(array.keys, now), values(array.items, now)), values.notes
    )


def _resolve_tuple(written: Mapping[str, Any], declared: TupleTypeInfo, path: tuple[str, ...]) -> Resolution:
    if len(written["fields"]) != len(declared.field_types):
        raise Unresolvable(path, _format_type(written), str(declared), "the number of fields of a tuple cannot change")
    fields = [
        resolve(old, new, (*path, f"f{index}"))
        for index, (old, new) in enumerate(zip(written["fields"], declared.field_types, strict=True))
    ]
    return _resolve_record(declared, [(index, field) for index, field in enumerate(fields)], ())


def _resolve_struct(written: Mapping[str, Any], declared: StructTypeInfo, path: tuple[str, ...]) -> Resolution:
    names = list(written.get("names") or (f"f{index}" for index in range(len(written["fields"]))))
    old_types = dict(zip(names, written["fields"], strict=True))
    renamed = read_former_names(declared)
    sources: list[tuple[int | None, Resolution]] = []
    notes: list[str] = []
    used: set[str] = set()
    for name, field_type in zip(declared.field_names, declared.field_types, strict=True):
        candidates = (name, *renamed.get(name, ()))
        old_name = next((candidate for candidate in candidates if candidate in old_types), None)
        if old_name is None:
            has_default, value = find_default(declared, name)
            if not has_default:
                reason = f"the field '{name}' is new and has no default"
                raise Unresolvable((*path, name), "nothing", str(field_type), reason)
            default = "its default" if callable(value) else repr(value)
            notes.append(_note((*path, name), f"is new, {default}"))
            sources.append((None, Resolution(_fill_default(field_type, value))))
            continue
        if old_name != name:
            notes.append(_note((*path, name), f"was called {old_name}"))
        used.add(old_name)
        sources.append((names.index(old_name), resolve(old_types[old_name], field_type, (*path, name))))
    notes += [_note((*path, name), "is dropped") for name in names if name not in used]
    if [name for name in names if name in used] != [name for name in declared.field_names if name in names]:
        notes += [] if notes else [_note(path, "fields are in another order")]
    return _resolve_record(declared, sources, tuple(notes))


def _resolve_record(
    declared: StructTypeInfo, sources: Sequence[tuple[int | None, Resolution]], notes: tuple[str, ...]
) -> Resolution:
    """Build each declared field from the written field with the given index, or without one from its default."""
    notes = (*notes, *(note for _, resolution in sources for note in resolution.notes))
    if all(index == source and part.convert is None for index, (source, part) in enumerate(sources)):
        return Resolution(None, notes)  # written fields after the declared ones are never read
    fields = list(declared.arrow_type)

    def rebuild(array: pa.Array, now: int) -> pa.Array:
        arrays = []
        for source, resolution in sources:
            column = pa.nulls(len(array)) if source is None else array.field(source)
            arrays.append(resolution(column, now))
        if isinstance(declared, RowTypeInfo):
            row_kinds = array.type.get_field_index(KIND_FIELD)
            arrays.append(array.field(row_kinds) if row_kinds >= 0 else pa.nulls(len(array), pa.int8()))
        nulls = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=nulls)

    return Resolution(rebuild, notes)


def _fill_default(type_info: TypeInformation, value: Any) -> Convert:
    def fill(array: pa.Array, _: int) -> pa.Array:
        return type_info.to_arrow([value() if callable(value) else value for _ in range(len(array))])

    return fill


def _widen(source: TypeInformation, declared: TypeInformation) -> Convert:
    is_number = pa.types.is_integer(declared.arrow_type) or pa.types.is_floating(declared.arrow_type)
    if is_number:
        return lambda array, _: pc.cast(array, declared.arrow_type, safe=False)
    return lambda array, _: declared.to_arrow(source.from_arrow(array))


def _replace_elements(array: pa.Array, values: pa.Array) -> pa.Array:
    """The lists of an array with other elements; null lists stay null."""
    nulls = array.is_null() if array.null_count else None
    return pa.ListArray.from_arrays(array.offsets, values, type=pa.list_(values.type), mask=nulls)


def _replace_entries(array: pa.Array, keys: pa.Array, items: pa.Array) -> pa.Array:
    offsets = array.offsets
    if array.null_count:
        valid = pa.concat_arrays([array.is_valid(), pa.array([True])])
        offsets = pc.if_else(valid, offsets, pa.scalar(None, pa.int32()))
    return pa.MapArray.from_arrays(offsets, keys, items, type=pa.map_(keys.type, items.type))


# ------------------------------------------------------------------------------------------------------------- classes


def replace_classes(written: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON form of a type with ROW in place of the types of user classes."""

    def replace(node: Any) -> Any:
        if isinstance(node, Mapping):
            members = {name: replace(member) for name, member in node.items() if name != "class"}
            return {**members, "type": "ROW"} if "class" in node else members
        return [replace(member) for member in node] if isinstance(node, list) else node

    without: dict[str, Any] = replace(written)
    return without


def find_classes(type_info: Any) -> Iterator[type]:
    """Iterate over the user classes whose instances a type holds."""
    if isinstance(type_info, TypeInformation):
        if isinstance(cls := getattr(type_info, "cls", None), type):
            yield cls
        for name in ("field_types", "elem_type", "key_type", "value_type"):
            yield from find_classes(getattr(type_info, name, None))
    elif isinstance(type_info, list):
        for field_type in type_info:
            yield from find_classes(field_type)


# ----------------------------------------------------------------------------------------------------------- messages


def _parse_type(written: Mapping[str, Any], declared: TypeInformation, path: tuple[str, ...]) -> TypeInformation:
    try:
        return TypeInformation.type_from_json(dict(written))
    except UnknownType:
        reason = "this release of millstream does not know the written type"
        raise Unresolvable(path, json.dumps(written), str(declared), reason) from None


def _format_type(written: Mapping[str, Any]) -> str:
    try:
        return str(TypeInformation.type_from_json(dict(written)))
    except UnknownType:
        return json.dumps(written)


def _note(path: Sequence[str], text: str) -> str:
    return f"{'.'.join(path)} {text}" if path else text
