"""Every written type with every declared type: which are read and which are refused."""

from __future__ import annotations

from dataclasses import dataclass, field, make_dataclass
from decimal import Decimal
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.state.evolution import Unresolvable, resolve, resolve_key, resolve_stored, to_timed_type
from millstream.types.evolution import NoSuchField, renamed
from millstream.types.factory import Types
from millstream.types.row import Row
from millstream.types.type_hints import find_type_of_hint


def migrated(old, new, values, now=0):
    way = resolve(old.to_json(), new)
    return new.from_arrow(way(old.to_arrow(values), now))


def record(name, **fields):
    """A dataclass and its type; a field is a type or a (type, default)."""
    made = [
        (each, kind) if not isinstance(kind, tuple) else (each, kind[0], field(default=kind[1]))
        for each, kind in fields.items()
    ]
    cls = make_dataclass(name, made)
    return cls, find_type_of_hint(cls)


def test_fields_are_matched_by_name_whatever_their_order():
    old_cls, old = record("Old", a=int, b=str)
    new_cls, new = record("New", b=str, a=int)
    assert migrated(old, new, [old_cls(1, "x"), None, old_cls(2, "y")]) == [new_cls("x", 1), None, new_cls("y", 2)]


def test_a_new_field_has_its_default_in_old_records():
    @dataclass
    class New:
        a: int
        tags: list[str] = field(default_factory=list)
        count: int = 7

    old_cls, old = record("Old", a=int)
    one, two = migrated(old, find_type_of_hint(New), [old_cls(1), old_cls(2)])
    assert (one, two) == (New(1, [], 7), New(2, [], 7))
    assert one.tags is not two.tags


def test_a_new_field_without_default_is_refused_by_name():
    _, old = record("Old", a=int)
    _, new = record("New", a=int, b=int)
    with pytest.raises(Unresolvable, match=r"field b: .*'b' is new and has no default"):
        resolve(old.to_json(), new)


def test_a_dropped_field_is_reported():
    old_cls, old = record("Old", a=int, b=str)
    new_cls, new = record("New", a=int)
    assert migrated(old, new, [old_cls(1, "x")]) == [new_cls(1)]
    assert resolve(old.to_json(), new).notes == ("b is dropped",)


def test_a_field_is_renamed_by_its_metadata():
    @dataclass
    class New:
        total: int = field(metadata={"renamed_from": "sum"})

    old_cls, old = record("Old", sum=int)
    assert migrated(old, find_type_of_hint(New), [old_cls(5)]) == [New(5)]


def test_a_field_of_a_row_is_renamed_by_a_map():
    old = Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.STRING()])
    new = renamed(Types.ROW_NAMED(["b", "c", "d"], [Types.STRING(), Types.LONG(), Types.LONG()]), {"c": "a"})
    found = migrated(old, new, [Row(a=1, b="x")])
    assert [row.as_dict() for row in found] == [{"b": "x", "c": 1, "d": None}]
    with pytest.raises(NoSuchField, match="'z'"):
        renamed(old, {"z": "a"})


def test_records_within_records_lists_and_maps_evolve():
    old_in, _ = record("OldIn", a=int)
    new_in, _ = record("NewIn", a=float, b=(int, 3))
    old_cls, old = record("Old", one=old_in, many=list[old_in], named=dict[str, old_in])
    new_cls, new = record("New", named=dict[str, new_in], many=list[new_in], one=new_in)
    value = old_cls(old_in(1), [old_in(2), old_in(3)], {"k": old_in(4)})
    assert migrated(old, new, [value]) == [
        new_cls({"k": new_in(4.0, 3)}, [new_in(2.0, 3), new_in(3.0, 3)], new_in(1.0, 3))
    ]


def test_named_tuples_rows_and_dataclasses_are_interchangeable():
    class Pair(NamedTuple):
        b: str
        a: int = 0

    old_cls, old = record("Old", a=int, b=str)
    assert migrated(old, find_type_of_hint(Pair), [old_cls(1, "x")]) == [Pair("x", 1)]
    as_row = migrated(old, Types.ROW_NAMED(["b"], [Types.STRING()]), [old_cls(1, "x")])
    assert [row.as_dict() for row in as_row] == [{"b": "x"}]


WHOLE = [Types.BYTE(), Types.SHORT(), Types.INT(), Types.LONG()]


@pytest.mark.parametrize("place", range(4))
def test_numbers_widen_and_do_not_narrow(place):
    old = WHOLE[place]
    for new in (*WHOLE[place + 1 :], Types.BIG_INT()):
        assert migrated(old, new, [-1, None, 100]) == [-1, None, 100]
    assert migrated(old, Types.DOUBLE(), [-1, None]) == [-1.0, None]
    assert migrated(old, Types.BIG_DEC(), [7]) == [Decimal(7)]
    for new in (*WHOLE[:place], Types.STRING(), Types.BOOLEAN()):
        with pytest.raises(Unresolvable):
            resolve(old.to_json(), new)


def test_the_refusal_names_the_field_and_both_types():
    _, old = record("Old", a=list[int])
    _, new = record("New", a=list[str])
    with pytest.raises(Unresolvable, match=r"field a\.element: written as Long, declared as String"):
        resolve(old.to_json(), new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (Types.LIST(Types.INT()), Types.INT()),
        (Types.MAP(Types.INT(), Types.INT()), Types.LIST(Types.INT())),
        (Types.TUPLE([Types.INT()]), Types.TUPLE([Types.INT(), Types.INT()])),
        (Types.MAP(Types.STRING(), Types.INT()), Types.MAP(Types.INT(), Types.INT())),
    ],
    ids=str,
)
def test_other_shapes_are_refused(old, new):
    with pytest.raises(Unresolvable):
        resolve(old.to_json(), new)


def test_untyped_state_is_read_as_typed_state_and_the_reverse():
    objects = Types.PICKLED_BYTE_ARRAY()
    assert migrated(objects, Types.LONG(), [1, None, 2]) == [1, None, 2]
    assert migrated(Types.LONG(), objects, [1, None, 2]) == [1, None, 2]


def test_keys_keep_their_values_or_are_refused():
    objects = Types.PICKLED_BYTE_ARRAY()
    for old, new in ((Types.INT(), Types.LONG()), (objects, Types.LONG()), (Types.LONG(), objects)):
        way = resolve_key(old.to_json(), new)
        assert new.from_arrow(way(old.to_arrow([1, 2]), 0)) == [1, 2]
    for old, new in ((Types.LONG(), Types.DOUBLE()), (Types.LONG(), Types.STRING()), (Types.LONG(), Types.INT())):
        with pytest.raises(Unresolvable, match="the type of a key cannot change"):
            resolve_key(old.to_json(), new)
    way = resolve_key(objects.to_json(), Types.LONG())
    with pytest.raises(Unresolvable, match="the declared type changes the values of keys"):
        way(objects.to_arrow([1.5]), 0)


def test_a_record_as_key_must_not_change():
    _, old = record("Key", a=int)
    _, same = record("Renamed", a=int)
    _, grown = record("Key", a=int, b=(int, 0))
    assert resolve_key(old.to_json(), same).convert is None
    with pytest.raises(Unresolvable, match="the type of a key cannot change"):
        resolve_key(old.to_json(), grown)


@pytest.mark.parametrize("shape", ["value", "list", "map"])
def test_a_time_to_live_is_enabled_and_disabled(shape):
    plain = {"value": Types.INT(), "list": Types.LIST(Types.INT()), "map": Types.MAP(Types.STRING(), Types.INT())}
    bare = {"value": [1, 2], "list": [[1, 2], []], "map": [{"a": 1}, {"b": 2, "c": 3}]}[shape]
    timed = {
        "value": [(1, 50), (2, 50)],
        "list": [[(1, 50), (2, 50)], []],
        "map": [{"a": (1, 50)}, {"b": (2, 50), "c": (3, 50)}],
    }[shape]
    old, new = plain[shape], to_timed_type(plain[shape], shape)
    way = resolve_stored(old.to_json(), new, shape, had_ttl=False, has_ttl=True)
    assert new.from_arrow(way(old.to_arrow(bare), 50)) == timed
    back = resolve_stored(new.to_json(), old, shape, had_ttl=True, has_ttl=False)
    assert old.from_arrow(back(new.to_arrow(timed), 0)) == bare


def test_a_tuple_of_the_user_is_not_a_timestamped_value():
    pair = Types.TUPLE([Types.INT(), Types.LONG()])
    way = resolve_stored(pair.to_json(), to_timed_type(pair, "value"), "value", had_ttl=False, has_ttl=True)
    assert to_timed_type(pair, "value").from_arrow(way(pair.to_arrow([(1, 2)]), 9)) == [((1, 2), 9)]


FIELDS = st.lists(st.sampled_from("abcdef"), unique=True, min_size=1)


@given(FIELDS, FIELDS, st.lists(st.integers(-99, 99), min_size=6, max_size=6))
def test_fields_that_stay_keep_their_values_when_others_change(before, after, numbers):
    old_cls, old = record("Old", **dict.fromkeys(before, int))
    new_cls, new = record("New", **dict.fromkeys(after, (int, -1000)))
    values = dict(zip("abcdef", numbers, strict=True))
    (found,) = migrated(old, new, [old_cls(*(values[name] for name in before))])
    assert found == new_cls(*(values[name] if name in before else -1000 for name in after))
