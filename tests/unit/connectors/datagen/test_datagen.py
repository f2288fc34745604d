"""Laws of generated records: a record is a function of the seed, the field and the index."""

import math
import pickle
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reading import budgets, everything, restarting, values

from millstream.connector.source import Boundedness, Budget, ReaderContext, SplitRange
from millstream.connectors.datagen import (
    Choice,
    Computed,
    DataGeneratorSource,
    DataGenSource,
    EventTime,
    InvalidField,
    RandomBoolean,
    RandomFloat,
    RandomInt,
    RandomString,
    RandomTimestamp,
    RateLimiterStrategy,
    Sequence,
)
from millstream.connectors.datagen.positions import InvalidGenerator
from millstream.types.factory import Types


def doubled(columns):
    return pc.multiply(columns["id"], 2)


FIELDS = {
    "id": Sequence(100, 3),
    "key": RandomInt(-5, 5),
    "hot": RandomInt(1, 1000, skew=1.2),
    "big": RandomInt(-(2**63), 2**63 - 1),
    "wide": RandomInt(0, 2**40),
    "price": RandomFloat(-1.5, 2.5),
    "flag": RandomBoolean(0.25),
    "user": RandomString("user-", cardinality=50),
    "many": RandomString("u", cardinality=10**9),
    "code": RandomString(length=13),
    "name": RandomString("n-", cardinality=9, length=4),
    "kind": Choice(["a", "b", None], weights=[1, 2, 1]),
    "at": EventTime(1_000, 10, 25),
    "seen": RandomTimestamp(0, 10**12, Types.SQL_TIMESTAMP()),
    "twice": Computed(doubled, Types.LONG()),
}


def column(field, count, seed=0, start=0):
    source = DataGenSource({"x": field}, count=start + count, seed=seed)
    return [row.x for row in values(source, SplitRange("0", start, start + count), 100_000)]


@settings(max_examples=20)
@given(st.integers(1, 5), st.integers(1, 70), st.integers(1, 50), st.booleans(), st.none() | st.integers(1, 3))
def test_ranges_do_not_change_records(parallelism, records, block, restart, splits):
    source = DataGenSource(FIELDS, count=41, seed=4, splits=splits)
    between = restarting(source, 6 - parallelism) if restart else lambda same: same
    found = everything(source, parallelism, records=records, block=block, between=between)
    assert sorted(found, key=lambda row: row.id) == everything(DataGenSource(FIELDS, count=41, seed=4))


def test_a_column_does_not_depend_on_the_other_fields():
    rows = everything(DataGenSource(FIELDS, count=20, seed=1))
    alone = everything(DataGenSource({"user": FIELDS["user"]}, count=20, seed=1))
    assert [row.user for row in rows] == [row.user for row in alone]


def test_values_do_not_change_between_releases():
    source = DataGenSource({"a": RandomInt(0, 99), "b": RandomString(length=4), "c": RandomFloat()}, count=3, seed=42)
    assert [tuple(row) for row in everything(source)] == [
        (92, "55ux", 0.8998002728819502),
        (84, "5wvg", 0.7031301224540956),
        (87, "xqep", 0.11439770783238334),
    ]


def test_columns_differ_by_seed_and_name():
    one, other = (column(RandomInt(0, 2**62), 50, seed) for seed in (1, 2))
    assert not set(one) & set(other)
    rows = everything(DataGenSource({"x": RandomInt(0, 2**62), "y": RandomInt(0, 2**62)}, count=50))
    assert not {row.x for row in rows} & {row.y for row in rows}


def test_whole_numbers_fill_their_range_evenly():
    counts = Counter(column(RandomInt(3, 7), 50_000))
    assert set(counts) == {3, 4, 5, 6, 7}
    assert max(counts.values()) - min(counts.values()) < 1_000


@pytest.mark.parametrize("skew", [0.5, 1.0, 1.1, 2.0])
def test_skew_makes_low_numbers_frequent_as_zipf_says(skew):
    counts = Counter(column(RandomInt(1, 100, skew=skew), 100_000))
    assert set(counts) <= set(range(1, 101))
    # the densities of the first ranks, as the integral that stands for Zipf's sum has them
    share = [
        math.log((rank + 1) / rank) if skew == 1 else abs((rank + 1) ** (1 - skew) - rank ** (1 - skew))
        for rank in (1, 4)
    ]
    assert counts[1] / counts[4] == pytest.approx(share[0] / share[1], rel=0.1)


def test_numbers_and_flags_keep_their_bounds_and_means():
    prices = np.array(column(RandomFloat(-1.5, 2.5), 50_000))
    assert prices.min() >= -1.5
    assert prices.max() < 2.5
    assert prices.mean() == pytest.approx(0.5, abs=0.03)
    assert sum(column(RandomBoolean(0.25), 50_000)) / 50_000 == pytest.approx(0.25, abs=0.02)


def test_the_widest_range_of_whole_numbers_is_used_on_both_sides():
    drawn = column(RandomInt(-(2**63), 2**63 - 1), 1_000)
    assert min(drawn) < -(2**62)
    assert max(drawn) > 2**62
    assert len(set(drawn)) == 1_000


def test_strings_have_their_prefix_length_and_cardinality():
    assert {len(text) for text in column(RandomString("é", length=13), 100)} == {14}
    assert len(set(column(RandomString("p-", cardinality=7), 1_000))) == 7
    assert all(text.startswith("p-") for text in column(RandomString("p-", cardinality=7, length=3), 10))
    assert len(set(column(RandomString(length=30), 1_000))) == 1_000
    assert column(RandomString("", length=0), 3) == [""] * 3


def test_looked_up_and_generated_strings_are_equal():
    field = RandomString("s", cardinality=300, length=5)
    whole = column(field, 1_000)  # from a dictionary
    assert [column(field, 1, start=index)[0] for index in range(20)] == whole[:20]


def test_choice_follows_its_weights():
    counts = Counter(column(Choice([1, 2, 3], weights=[1, 0, 3]), 40_000))
    assert set(counts) == {1, 3}
    assert counts[3] / counts[1] == pytest.approx(3, rel=0.1)


@given(st.integers(0, 100), st.sampled_from([0, 1, 7, 2.5]))
def test_event_time_is_never_later_than_its_disorder_allows(disorder, step):
    times = column(EventTime(5, step, disorder), 300)
    latest = np.maximum.accumulate(times)
    assert all(latest - times <= disorder)
    assert all(math.floor(index * step) + 5 - disorder <= time <= index * step + 5 for index, time in enumerate(times))


def test_the_event_time_is_the_timestamp_of_the_record():
    source = DataGenSource({"at": EventTime(0, 10), "x": Sequence()}, count=3)
    (records,) = source.create_reader(ReaderContext(0, 1, 10)).read(SplitRange("0", 0, 3))
    assert list(records.timestamps) == [0, 10, 20]


@dataclass
class Order:
    price: float
    id: int


def test_records_can_be_instances_of_a_class():
    source = DataGenSource({"id": Sequence(), "price": RandomFloat(1, 1)}, count=2, record_type=Order)
    assert everything(source) == [Order(1.0, 0), Order(1.0, 1)]
    with pytest.raises(InvalidField, match="price"):
        DataGenSource({"id": Sequence(), "price": Sequence()}, record_type=Order)
    with pytest.raises(InvalidField, match="has fields"):
        DataGenSource({"id": Sequence()}, record_type=Order)


def test_columns_are_of_the_declared_arrow_type():
    source = DataGenSource(FIELDS, count=2)
    (records,) = source.create_reader(ReaderContext(0, 1, 10)).read(SplitRange("0", 0, 2))
    assert isinstance(records.values, pa.StructArray)
    assert records.values.type == source.type_info().arrow_type


def test_a_rate_lets_records_arrive_by_the_plans_time_and_wait():
    source = DataGenSource({"x": Sequence()}, rate=100)
    assert source.boundedness() is Boundedness.CONTINUOUS_UNBOUNDED
    enumerator = source.create_enumerator(2)
    planned = [sum(part.records for part in enumerator.plan(b)) for _, b in zip(range(5), budgets(60, step=1_000))]
    assert planned == [0, 60, 60, 60, 60]
    assert enumerator.lag() == 400 - 240
    again = source.create_enumerator(3, enumerator.snapshot())
    assert sum(part.records for part in again.plan(Budget(1_000, 1, 5_000))) == 500 - 240


def test_few_records_at_a_time_reach_every_split():
    enumerator = DataGenSource({"x": Sequence()}).create_enumerator(3)
    lanes = [part.split for _, budget in zip(range(6), budgets(1)) for part in enumerator.plan(budget)]
    assert Counter(lanes) == {"0000": 2, "0001": 2, "0002": 2}


def test_held_splits_get_nothing_and_no_record_is_lost():
    enumerator = DataGenSource({"x": Sequence()}, count=10).create_enumerator(2)
    (part,) = enumerator.plan(Budget(4, 1, 0, frozenset({"0000"})))
    assert (part.split, part.start, part.end) == ("0001", 0, 4)
    assert enumerator.plan(Budget(4, 1, 0, frozenset({"0000", "0001"}))) == []
    assert sum(part.records for part in enumerator.plan(Budget(99, 1, 0))) == 6
    assert enumerator.finished()


def square(index):
    return index * index


class Squares:
    def map(self, index):
        return index * index


@pytest.mark.parametrize("function", [square, Squares()])
def test_a_function_of_the_index_generates_records(function):
    source = DataGeneratorSource(function, 10, RateLimiterStrategy.no_op(), Types.LONG())
    assert everything(source, 3, records=4, block=2) != []
    assert sorted(everything(source, 3, records=4, block=2)) == [index * index for index in range(10)]
    assert source.type_info() == Types.LONG()


def test_a_generator_function_keeps_its_rate():
    enumerator = DataGeneratorSource(square, 10**9, RateLimiterStrategy.per_second(5)).create_enumerator(1)
    assert [len(enumerator.plan(b)) for _, b in zip(range(3), budgets(step=200))] == [0, 1, 1]


def test_descriptions_can_be_pickled():
    source = DataGenSource(FIELDS, count=5, seed=3)
    assert everything(pickle.loads(pickle.dumps(source))) == everything(source)


@pytest.mark.parametrize(
    "make",
    [
        lambda: RandomInt(2, 1),
        lambda: RandomInt(0, 2**63),
        lambda: RandomInt(0, 1, skew=-1),
        lambda: RandomString(),
        lambda: RandomString(length=3, skew=1),
        lambda: Choice([]),
        lambda: Choice([1], weights=[1, 2]),
        lambda: Choice([1, 2], weights=[0, 0]),
        lambda: Choice([1, "a"]),
        lambda: EventTime(step_ms=-1),
        lambda: RandomBoolean(2),
        lambda: DataGenSource({}),
        lambda: DataGenSource({"x": 1}),
        lambda: DataGenSource({"x": Sequence()}, event_time="x"),
    ],
)
def test_invalid_fields_are_refused(make):
    with pytest.raises(InvalidField):
        make()


@pytest.mark.parametrize("options", [{"count": -1}, {"rate": 0}, {"splits": 0}])
def test_invalid_generators_are_refused(options):
    with pytest.raises(InvalidGenerator):
        DataGenSource({"x": Sequence()}, **options)
