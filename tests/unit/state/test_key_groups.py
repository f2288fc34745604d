"""Laws of key groups: equal keys have the same key group in every process and release."""

from __future__ import annotations

import datetime as dt
import enum
import os
import pickle
import subprocess
import sys
import uuid
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.errors import UserError
from millstream.state.key_groups import (
    BadParallelism,
    KeyGrouper,
    KeyGroupRange,
    UnusableKey,
    check_parallelism,
    default_max_parallelism,
    key_bytes,
    key_group,
    range_of,
    routing_table,
    stable_hash,
    subtask_of,
)
from millstream.types.row import Row, RowKind

quick = settings(deadline=None, max_examples=80)


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Size(enum.IntEnum):
    SMALL = 1


class Name(str, enum.Enum):  # noqa: UP042
    ANN = "ann"


class Point(NamedTuple):
    x: int
    y: int


@dataclass(frozen=True)
class Place:
    city: str
    zip_code: int
    note: str = field(default="", compare=False)


PINNED: list[tuple[Any, int]] = [
    (None, 1838281907459330133),
    (0, 16294208416658607535),
    (1, 10451216379200822465),
    (-1, 16490336266968443936),
    (2**63, 5196802822362493915),
    (2**100, 5918664975826994889),
    (1.5, 6160718830479441267),
    (-0.1, 8128916531280572824),
    (float("inf"), 5575866757202251016),
    (float("nan"), 14675559271411649290),
    (Decimal("0.1"), 2313349141167596036),
    (1 + 2j, 10423456354445245959),
    ("", 15472631990262873619),
    ("millstream", 725020904838140596),
    ("ünïcödé 💧", 1821990944837517577),
    ("\ud800", 883890890741289853),
    (b"", 6294355645245719615),
    (b"millstream", 7195946325293534679),
    ((), 11771459875190401828),
    (("a", 1), 11458856253575054684),
    (("a", ("b", None), 2.5), 14749572694806409872),
    (Row("a", 1), 11458856253575054684),
    (Point(1, 2), 11253233126664971725),
    (frozenset({1, "a"}), 13149686033649969716),
    (dt.date(2024, 2, 29), 13929939480566652974),
    (dt.datetime(2024, 2, 29, 12, 30, 0, 7), 10150490556668539640),  # noqa: DTZ001
    (dt.datetime(2024, 2, 29, 12, 30, tzinfo=dt.UTC), 361741071139663336),
    (dt.time(1, 2, 3), 15296348428199938124),
    (dt.timedelta(days=-1), 4981309033227058902),
    (uuid.UUID(int=7), 15550848874755201576),
    (Color.RED, 3820304038637140710),
    (Place("Bilbao", 48001), 11288067677002746269),
]

MADRID = dt.datetime(2024, 6, 1, 14, tzinfo=ZoneInfo("Europe/Madrid"))

EQUAL = [
    (0, -0.0, False, np.bool_(False), Decimal("-0"), 0j),
    (1, 1.0, True, np.int8(1), np.uint64(1), np.float32(1), Decimal("1.00"), Fraction(1), 1 + 0j, Size.SMALL),
    (-(2**70), Decimal(-(2**70)), float(-(2**70))),
    (2**64, Decimal(2**64), float(2**64)),
    (0.5, Decimal("0.50"), Fraction(1, 2), np.float16(0.5), 0.5 + 0j),
    (Fraction(1, 10), Decimal("0.1")),
    (float("inf"), Decimal("Infinity"), np.float32("inf")),
    ("ann", Name.ANN, np.str_("ann")),
    (b"a", np.bytes_(b"a")),
    ((1, 2), Point(1, 2), (1.0, True + 1)),
    (frozenset("abc"), frozenset("cba")),
    (MADRID, MADRID.astimezone(dt.UTC), pd.Timestamp(MADRID)),
    (dt.datetime(2024, 6, 1), np.datetime64("2024-06-01T00", "us").item(), pd.Timestamp(2024, 6, 1)),  # noqa: DTZ001
    (dt.time(12, tzinfo=dt.UTC), dt.time(13, tzinfo=dt.timezone(dt.timedelta(hours=1)))),
    (Place("a", 1), Place("a", 1, note="not compared")),
    (Row("a", 1), Row("a", 1.0)),
]


# ------------------------------------------------------------------------------------------------------- the hash


@pytest.mark.parametrize(("key", "expected"), PINNED, ids=lambda value: repr(value)[:30])
def test_hashes_never_change(key: Any, expected: int) -> None:
    assert stable_hash(key) == expected


@pytest.mark.parametrize("keys", EQUAL, ids=lambda keys: repr(keys[0]))
def test_equal_keys_have_the_same_hash_and_bytes(keys: tuple[Any, ...]) -> None:
    assert all(key == keys[0] for key in keys)
    assert len({stable_hash(key) for key in keys}) == 1
    assert len({key_bytes(key) for key in keys}) == 1


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.integers()
    | st.floats(allow_nan=False)
    | st.decimals(allow_nan=False, places=2)
    | st.fractions(max_denominator=10)
    | st.text(max_size=3)
    | st.binary(max_size=3)
    | st.dates()
    | st.datetimes()
    | st.datetimes(timezones=st.sampled_from([dt.UTC, ZoneInfo("Asia/Tokyo")]))
    | st.timedeltas()
    | st.sampled_from([*Color, Size.SMALL, Name.ANN])
)
KEYS = st.recursive(SCALARS, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=5)


@given(KEYS, KEYS)
@quick
def test_bytes_are_equal_exactly_when_keys_are(a: Any, b: Any) -> None:
    assert (key_bytes(a) == key_bytes(b)) == (a == b)
    if a == b:
        assert stable_hash(a) == stable_hash(b)
    assert 0 <= stable_hash(a) < 2**64


def test_bytes_do_not_depend_on_how_a_key_was_built() -> None:
    one = "".join(["a", "b"])
    assert key_bytes((one, one)) == key_bytes((one, "".join(["a", "b"])))
    assert key_bytes(("a", "bc")) != key_bytes(("ab", "c"))
    assert key_bytes((("a",), "b")) != key_bytes(("a", ("b",)))
    assert key_bytes(Row.of_kind(RowKind.DELETE, 1)) != key_bytes(Row(1))


def test_hash_is_the_same_in_another_process_with_another_hash_seed() -> None:
    keys = ["a", b"b", (1, "c"), frozenset("abcdef"), None, 2.5, ("x", frozenset({("y", 1), ("z", 2)}))]
    script = (
        "import sys, pickle; from millstream.state.key_groups import stable_hash\n"
        "print(*map(stable_hash, pickle.load(sys.stdin.buffer)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=pickle.dumps(keys),
        stdout=subprocess.PIPE,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "4711", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert [int(number) for number in done.stdout.split()] == [stable_hash(key) for key in keys]


def test_keys_spread_evenly_over_groups() -> None:
    for keys in (range(12_800), range(0, 12_800 * 1024, 1024), [f"user-{n}" for n in range(12_800)]):
        counts = np.bincount(KeyGrouper(128).of_many(list(keys)), minlength=128)
        assert counts.min() > 50
        assert counts.max() < 160


class Mutable:
    def __repr__(self) -> str:
        return "m" * 500


@dataclass
class NotFrozen:
    a: int


@dataclass(frozen=True)
class OwnEquality:
    a: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OwnEquality) and self.a.lower() == other.a.lower()

    def __hash__(self) -> int:
        return hash(self.a.lower())


class Loud(str):
    def __eq__(self, other: object) -> bool:
        return str(self).lower() == str(other).lower()

    __hash__ = str.__hash__


@pytest.mark.parametrize(
    "key",
    [
        [1],
        {"a": 1},
        {1},
        bytearray(b"a"),
        Mutable(),
        NotFrozen(1),
        OwnEquality("a"),
        Loud("loud"),
        object(),
        len,
        ("a", [1]),
        Row([1]),
        np.datetime64("2024-01-01T00:00:00.000000001"),
        np.datetime64("NaT"),
        Decimal("1e999999"),
        Decimal("sNaN"),
        pd.NaT,
    ],
    ids=lambda key: type(key).__name__,
)
def test_a_value_that_cannot_be_a_key_is_named(key: Any) -> None:
    for ask in (stable_hash, key_bytes, KeyGrouper(128).of, lambda key: KeyGrouper(128).of_many(["a", key])):
        with pytest.raises(
            UnusableKey, match=f"of type {type(key).__name__} cannot be a key.*hint: use a string"
        ) as caught:
            ask(key)
        assert isinstance(caught.value, UserError)
        assert len(caught.value.value) <= 80


# ------------------------------------------------------------------------------------------------------ key groups


@given(st.lists(KEYS, max_size=20), st.sampled_from([1, 2, 7, 128, 32768]))
@quick
def test_a_grouper_agrees_with_key_group(keys: list[Any], max_parallelism: int) -> None:
    grouper = KeyGrouper(max_parallelism, cache_size=5)
    expected = [key_group(key, max_parallelism) for key in keys]
    assert [grouper.of(key) for key in keys] == expected
    assert grouper.of_many(keys).tolist() == expected
    assert grouper.of_many(keys).dtype == np.int32


COLUMNS = st.one_of(
    *(
        st.tuples(st.just(kind), st.lists(st.none() | values, max_size=20))
        for kind, values in (
            (pa.int8(), st.integers(-128, 127)),
            (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
            (pa.uint64(), st.integers(0, 2**64 - 1)),
            (pa.bool_(), st.booleans()),
            (pa.float64(), st.floats() | st.integers(-5, 5).map(float)),
            (pa.float32(), st.floats(width=32)),
            (pa.string(), st.text(max_size=4)),
            (pa.large_string(), st.text(max_size=4)),
            (pa.binary(), st.binary(max_size=4)),
            (pa.decimal128(10, 2), st.decimals(-999, 999, places=2)),
            (pa.date32(), st.dates()),
            (pa.timestamp("us"), st.datetimes()),
            (
                pa.timestamp("ms", "UTC"),
                st.integers(0, 2**40).map(lambda ms: dt.datetime.fromtimestamp(ms // 1000, dt.UTC)),
            ),
            (pa.duration("us"), st.timedeltas(dt.timedelta(-999), dt.timedelta(999))),
            (pa.time64("us"), st.times()),
            (pa.null(), st.none()),
        )
    )
)


@given(COLUMNS)
@settings(deadline=None, max_examples=150)
def test_a_column_has_the_groups_of_its_values(column: tuple[pa.DataType, list[Any]]) -> None:
    kind, values = column
    array = pa.array(values, kind)
    expected = [key_group(value, 128) for value in array.to_pylist()]
    groups = KeyGrouper(128).of_column(array)
    assert groups.tolist() == expected
    assert groups.dtype == np.int32
    half = len(values) // 2
    assert KeyGrouper(128).of_column(pa.chunked_array([array[:half], array[half:]], kind)).tolist() == expected


def test_equal_numbers_of_different_columns_have_one_group() -> None:
    numbers = [0, 1, 5, 127]
    kinds = [pa.int8(), pa.uint16(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(5, 2)]
    expected = KeyGrouper(128).of_many(numbers).tolist()
    for kind in kinds:
        array = pa.array([Decimal(n) for n in numbers] if pa.types.is_decimal(kind) else numbers, kind)
        assert KeyGrouper(128).of_column(array).tolist() == expected


def test_structs_equal_tuples_and_dictionaries_equal_their_values() -> None:
    kind = pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string())]))])
    array = pa.array([{"a": 1, "b": {"c": "x"}}, None, {"a": None, "b": None}], kind)
    grouper = KeyGrouper(128)
    assert grouper.of_column(array).tolist() == grouper.of_many([(1, ("x",)), None, (None, None)]).tolist()
    assert grouper.of_column(array[1:]).tolist() == grouper.of_many([None, (None, None)]).tolist()
    words = pa.array(["a", None, "b", "a"])
    assert grouper.of_column(words.dictionary_encode()).tolist() == grouper.of_column(words).tolist()


def test_the_cache_of_a_grouper_is_bounded_and_not_pickled() -> None:
    grouper = KeyGrouper(128, cache_size=10)
    grouper.of_many(list(range(1000)))
    assert len(grouper._recent) <= 10
    assert pickle.loads(pickle.dumps(grouper)).of("a") == grouper.of("a")


# -------------------------------------------------------------------------------------------------------- subtasks


@pytest.mark.parametrize(
    ("parallelism", "max_parallelism", "ranges"),
    [
        (1, 128, [(0, 127)]),
        (3, 128, [(0, 42), (43, 85), (86, 127)]),
        (4, 128, [(0, 31), (32, 63), (64, 95), (96, 127)]),
        (3, 10, [(0, 3), (4, 6), (7, 9)]),
    ],
)
def test_ranges_are_flinks(parallelism: int, max_parallelism: int, ranges: list[tuple[int, int]]) -> None:
    found = [range_of(subtask, parallelism, max_parallelism) for subtask in range(parallelism)]
    assert [(one.start, one.end) for one in found] == ranges


@given(st.integers(1, 200), st.integers(0, 800))
@quick
def test_each_group_has_one_owner_and_every_subtask_owns_some(parallelism: int, more: int) -> None:
    max_parallelism = parallelism + more
    table = routing_table(parallelism, max_parallelism)
    owned = [range_of(subtask, parallelism, max_parallelism) for subtask in range(parallelism)]
    assert [group for one in owned for group in one] == list(range(max_parallelism))
    assert all(len(one) > 0 for one in owned)
    for group in range(max_parallelism):
        assert group in owned[table[group]]
        assert table[group] == subtask_of(group, parallelism, max_parallelism)


def test_a_range_behaves_like_a_set() -> None:
    one = KeyGroupRange(3, 5)
    assert (list(one), len(one), repr(one)) == ([3, 4, 5], 3, "KeyGroupRange(3..5)")
    assert [one.contains(group) for group in (2, 3, 5, 6)] == [False, True, True, False]
    assert one.intersects(KeyGroupRange(5, 9))
    assert not one.intersects(KeyGroupRange(6, 9))
    assert not one.intersects(KeyGroupRange(4, 3))
    assert (list(KeyGroupRange(4, 3)), len(KeyGroupRange(4, 3))) == ([], 0)
    assert len({one, KeyGroupRange(3, 5)}) == 1


@pytest.mark.parametrize(
    ("parallelism", "expected"),
    [(1, 128), (85, 128), (86, 256), (128, 256), (171, 256), (20_000, 32768), (32768, 32768)],
)
def test_default_max_parallelism_is_flinks(parallelism: int, expected: int) -> None:
    assert default_max_parallelism(parallelism) == expected


@pytest.mark.parametrize(
    ("parallelism", "max_parallelism"), [(0, 128), (-1, 8), (9, 8), (1, 32769), (1.5, 8), (True, 8), ("2", 8)]
)
def test_impossible_parallelisms_are_user_errors(parallelism: Any, max_parallelism: Any) -> None:
    with pytest.raises(BadParallelism, match=f"parallelism {parallelism!r} with .* {max_parallelism} .*hint"):
        check_parallelism(parallelism, max_parallelism)
    check_parallelism(1, 1)
    check_parallelism(32768, 32768)
