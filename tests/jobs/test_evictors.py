"""Evictors remove records from windows; results do not depend on how input is cut into epochs."""

from __future__ import annotations

import pytest

from millstream.common import Configuration, Duration, Time, Types, WatermarkStrategy
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.window import (
    CountEvictor,
    DeltaEvictor,
    Evictor,
    SlidingEventTimeWindows,
    TimeEvictor,
    TumblingEventTimeWindows,
)
from millstream.errors import UserError
from millstream.functions.aggregations import Aggregations, Count, Sum

KIND = Types.ROW_NAMED(["key", "at", "value"], [Types.STRING(), Types.LONG(), Types.LONG()])
ROWS = [(f"k{i % 3}", i * 7 % 40, i) for i in range(60)]


def windowed(assigner, parallelism: int = 2, records: int | None = None, rows=ROWS):
    configuration = Configuration()
    if records is not None:
        configuration.set_string("millstream.epoch.max-records", str(records))
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(parallelism)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(1000))
    stream = env.from_collection(rows, KIND).assign_timestamps_and_watermarks(
        strategy.with_timestamp_assigner(lambda row, _: row["at"])
    )
    return stream.set_parallelism(1).key_by("key").window(assigner)  # one subtask: arrival has an order


def expected(keep, size: int = 20, slide: int = 20) -> list[tuple[str, int]]:
    """Key and sum of the records that `keep` leaves in each window, computed directly."""
    found = []
    for key in ("k0", "k1", "k2"):
        for start in range(-size + slide, 60, slide):
            inside = [row for row in ROWS if row[0] == key and start <= row[1] < start + size]
            if inside:
                found.append((key, sum(row[2] for row in keep(inside))))
    return sorted(found)


def keep_last(count: int):
    return lambda rows: rows[-count:]


def keep_younger(span: int):
    return lambda rows: [row for row in rows if row[1] > max(other[1] for other in rows) - span]


def keep_near(limit: int):
    return lambda rows: [row for row in rows if abs(row[2] - rows[-1][2]) < limit]


@pytest.mark.parametrize(("parallelism", "records"), [(1, None), (2, 1), (3, 7), (2, 25)])
@pytest.mark.parametrize(
    ("evictor", "keep"),
    [
        (CountEvictor.of(2), keep_last(2)),
        (TimeEvictor.of(Time.milliseconds(8)), keep_younger(8)),
        (DeltaEvictor.of(20, lambda one, other: abs(one["value"] - other["value"])), keep_near(20)),
    ],
    ids=["count", "time", "delta"],
)
def test_a_reduce_gets_the_records_that_an_evictor_leaves(evictor, keep, parallelism, records):
    assigner = SlidingEventTimeWindows.of(Time.milliseconds(20), Time.milliseconds(10))
    result = windowed(assigner, parallelism, records).evictor(evictor).reduce(_add).map(lambda row: (row[0], row[2]))
    assert sorted(result.execute_and_collect()) == expected(keep, 20, 10)


def _add(one, other):
    return type(one)(key=one["key"], at=0, value=one["value"] + other["value"])


TUMBLING = TumblingEventTimeWindows.of(Time.milliseconds(20))


def test_built_in_aggregates_get_the_records_that_an_evictor_leaves():
    aggregated = windowed(TUMBLING).evictor(CountEvictor.of(2)).aggregate(Aggregations(total=Sum("value"), n=Count()))
    rows = list(aggregated.execute_and_collect())
    assert sorted((row["key"], row["total"]) for row in rows) == expected(keep_last(2))
    assert all(row["n"] <= 2 for row in rows)


def test_a_window_over_all_has_evictors():
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value)
    stream = env.from_collection([1, 2, 3, 4], Types.LONG()).assign_timestamps_and_watermarks(strategy)
    left = stream.set_parallelism(1).window_all(TUMBLING).evictor(CountEvictor.of(3)).reduce(lambda a, b: a + b)
    assert list(left.execute_and_collect()) == [9]


class Own(Evictor):
    """A user-defined evictor."""

    def __init__(self, do):
        self.do = do

    def evict_before(self, elements, size, window, ctx):
        assert size == len(elements)
        assert ctx.get_current_watermark() >= window.max_timestamp()
        return self.do(elements)

    def evict_after(self, elements, size, window, ctx):
        pass

    def __repr__(self):
        return "Own"


def test_a_user_defined_evictor():
    def odd(elements):
        elements[:] = [each for each in elements if each.value["value"] % 2]

    result = windowed(TUMBLING).evictor(Own(odd)).reduce(_add).map(lambda row: (row[0], row[2]))
    wanted = [pair for pair in expected(lambda rows: [row for row in rows if row[2] % 2]) if pair[1]]
    assert sorted(result.execute_and_collect()) == wanted


@pytest.mark.parametrize(
    ("do", "words"),
    [
        (lambda elements: elements[1:], ["Own returned", "in place"]),
        (lambda elements: elements.append(elements[0]), ["Own added or moved", "do not add any"]),
        (lambda elements: elements.reverse(), ["Own added or moved", "do not add any"]),
        (lambda elements: elements.remove(None), ["ValueError"]),
    ],
    ids=["returns", "adds", "reorders", "raises"],
)
def test_an_evictor_that_does_more_than_remove_is_named(do, words):
    stream = windowed(TUMBLING).evictor(Own(do)).reduce(_add)
    with pytest.raises(UserError) as caught:
        list(stream.execute_and_collect())
    assert all(word in str(caught.value) for word in [*words, "key 'k"]), str(caught.value)


def test_a_value_that_is_not_an_evictor_is_refused():
    with pytest.raises(UserError, match="not an evictor"):
        windowed(TUMBLING).evictor(5)
