"""Joins of streams equal a brute-force join, however the input is cut into epochs and distributed to subtasks."""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest

from millstream.common import Configuration, Duration, Time, Types, WatermarkStrategy
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.functions import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    ProcessJoinFunction,
    TaggedUnion,
    WindowFunction,
)
from millstream.datastream.output_tag import OutputTag
from millstream.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    GlobalWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from millstream.errors import UserError
from millstream.testing.harness import OperatorHarness

KIND = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])
CUTS = [(1, None), (2, 1), (2, 7), (3, 20)]  # parallelism, records of an epoch


class Click(NamedTuple):
    key: str
    at: int
    number: int


def events(seed: int, count: int, first: int = 0) -> list[tuple[str, int, int]]:
    chance = random.Random(seed)
    return [(f"k{chance.randrange(3)}", first + chance.randrange(60), number) for number in range(count)]


def environment(parallelism: int, records: int | None) -> StreamExecutionEnvironment:
    configuration = Configuration()
    if records is not None:
        configuration.set_string("millstream.epoch.max-records", str(records))
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(parallelism)


def timed(env, rows, kind=KIND):
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(1000))
    stream = env.from_collection(rows, kind)
    return stream.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(lambda row, _: row[1]))


def starts(kind: str, at: int) -> list[int]:
    size, slide = {"tumbling": (10, 10), "sliding": (10, 5)}[kind]
    return [start for start in range(-size, 200, slide) if start <= at < start + size]


def sessions(rows, gap: int) -> list[tuple[int, int]]:
    found: list[list[int]] = []
    for at in sorted(row[1] for row in rows):
        if found and at <= found[-1][1]:
            found[-1][1] = at + gap
        else:
            found.append([at, at + gap])
    return [(start, end) for start, end in found]


def groups(kind: str, left, right):
    """(key, window) -> (lefts, rights), by brute force."""
    found: dict = {}
    for key in {row[0] for row in left + right}:
        mine = [[row for row in rows if row[0] == key] for rows in (left, right)]
        spans = sessions(mine[0] + mine[1], 4) if kind == "session" else None
        for side, rows in enumerate(mine):
            for row in rows:
                windows = [s for s in spans if s[0] <= row[1] < s[1]] if spans else starts(kind, row[1])
                for window in windows:
                    found.setdefault((key, window), ([], []))[side].append(row)
    return found


ASSIGNERS = {
    "tumbling": TumblingEventTimeWindows.of(Time.milliseconds(10)),
    "sliding": SlidingEventTimeWindows.of(Time.milliseconds(10), Time.milliseconds(5)),
    "session": EventTimeSessionWindows.with_gap(Time.milliseconds(4)),
}


@pytest.mark.parametrize(("parallelism", "records"), CUTS)
@pytest.mark.parametrize("kind", ASSIGNERS)
def test_a_window_join_is_the_brute_force_join(kind, parallelism, records):
    left, right = events(1, 30), events(2, 25)
    env = environment(parallelism, records)
    joined = (
        timed(env, left)
        .join(timed(env, right))
        .where(lambda row: row[0])
        .equal_to(lambda row: row[0])
        .window(ASSIGNERS[kind])
        .apply(lambda one, two: (one[2], two[2]), Types.TUPLE([Types.LONG(), Types.LONG()]))
    )
    expected = [(a[2], b[2]) for lefts, rights in groups(kind, left, right).values() for a in lefts for b in rights]
    assert expected
    assert sorted(joined.execute_and_collect()) == sorted(expected)


class Counts(CoGroupFunction):
    def co_group(self, first, second):
        yield sorted(row[2] for row in first), sorted(row[2] for row in second)


@pytest.mark.parametrize(("parallelism", "records"), CUTS)
@pytest.mark.parametrize("kind", ASSIGNERS)
def test_a_co_group_sees_both_groups_also_where_one_is_empty(kind, parallelism, records):
    left, right = events(3, 14), events(4, 14, first=30)
    env = environment(parallelism, records)
    grouped = timed(env, left).co_group(timed(env, right)).where(0).equal_to(0).window(ASSIGNERS[kind]).apply(Counts())
    expected = [
        (sorted(row[2] for row in lefts), sorted(row[2] for row in rights))
        for lefts, rights in groups(kind, left, right).values()
    ]
    assert any(not lefts for lefts, _ in expected)
    assert any(not rights for _, rights in expected)
    assert sorted(grouped.execute_and_collect()) == sorted(expected)


def test_a_flat_join_returns_any_number_of_results_and_a_join_exactly_one(env):
    class Flat(FlatJoinFunction):
        def join(self, first, second):
            if first[2] % 2:
                return None
            return [(first[2], second[2])] * 2

    class One(JoinFunction):
        def join(self, first, second) -> int:
            return first[2] * 10 + second[2]

    rows = [("k", 1, 1), ("k", 2, 2)]
    for function, expected in ((Flat(), [(2, 1)] * 2 + [(2, 2)] * 2), (One(), [11, 12, 21, 22])):
        joined = timed(env, rows).join(timed(env, rows)).where(0).equal_to(0).window(ASSIGNERS["tumbling"])
        assert list(joined.apply(function).execute_and_collect()) == expected


def test_windows_of_a_join_may_count_records_of_both_streams(env):
    env.set_parallelism(1)
    rows = [("k", at, at) for at in range(6)]
    joined = (
        timed(env, rows)
        .co_group(timed(env, rows))
        .where(0)
        .equal_to(0)
        .window(GlobalWindows.create())
        .trigger(PurgingTrigger.of(CountTrigger.of(4)))
        .apply(lambda first, second: [len(first) + len(second)])
    )
    assert list(joined.execute_and_collect()) == [4, 4, 4]


def test_triggers_and_assigners_get_tagged_records(env):
    def gap(record: TaggedUnion) -> int:
        assert record.is_one() != record.is_two()
        return 5 if record.is_one() else record.get_two()[2]

    joined = (
        timed(env, [("k", 0, 0)])
        .join(timed(env, [("k", 4, 50), ("k", 54, 1)]))
        .where(0)
        .equal_to(0)
        .window(EventTimeSessionWindows.with_dynamic_gap(gap))
        .apply(lambda one, two: two[1])
    )
    assert sorted(joined.execute_and_collect()) == [4, 54]


def test_an_untyped_key_is_joined_with_a_typed_one(env):
    clicks = timed(env, [Click("a", 1, 7)], None)
    others = timed(env, [("a", 2, 8), ("b", 2, 9)], None)
    joined = clicks.join(others).where("key").equal_to(lambda row: row[0]).window(ASSIGNERS["tumbling"])
    assert list(joined.apply(lambda click, other: (click.number, other[2])).execute_and_collect()) == [(7, 8)]


class Pairs(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        assert ctx.get_left_timestamp() == left[1]
        assert ctx.get_right_timestamp() == right[1]
        assert ctx.get_timestamp() == max(left[1], right[1])
        yield left[2], right[2]


@pytest.mark.parametrize(("parallelism", "records"), CUTS)
@pytest.mark.parametrize(
    ("lower", "upper", "exclusive"),
    [(-5, 5, ""), (0, 0, ""), (3, 9, "l"), (-9, -3, "u"), (-4, 4, "lu"), (0, 20, ""), (-60, 60, "")],
)
def test_an_interval_join_is_the_brute_force_join(lower, upper, exclusive, parallelism, records):
    left, right = events(5, 30), events(6, 30)
    env = environment(parallelism, records)
    join = timed(env, left).key_by(0).interval_join(timed(env, right).key_by(0))
    join = join.between(Time.milliseconds(lower), Time.milliseconds(upper))
    join = join.lower_bound_exclusive() if "l" in exclusive else join
    join = join.upper_bound_exclusive() if "u" in exclusive else join
    first, last = lower + ("l" in exclusive), upper - ("u" in exclusive)
    expected = [(a[2], b[2]) for a in left for b in right if a[0] == b[0] and a[1] + first <= b[1] <= a[1] + last]
    assert sorted(join.process(Pairs()).execute_and_collect()) == sorted(expected)


def test_results_of_an_interval_join_have_the_later_time(env):
    class Times(ProcessJoinFunction):
        def process_element(self, left, right, ctx):
            yield left[2], right[2]

    rows = [("k", 3, 3), ("k", 17, 17)]
    joined = timed(env, rows).key_by(0).interval_join(timed(env, rows).key_by(0)).between(-20, 20).process(Times())
    windowed = joined.key_by(lambda _: 0).window(TumblingEventTimeWindows.of(Time.milliseconds(10)))
    assert sorted(windowed.apply(Ends()).execute_and_collect()) == [(10, [(3, 3)]), (20, [(3, 17), (17, 3), (17, 17)])]


class Ends(WindowFunction):
    def apply(self, key, window, inputs):
        yield window.end, sorted(inputs)


def refused(build, *words):
    with pytest.raises(UserError) as caught:
        build()
    assert all(word in str(caught.value) for word in words), str(caught.value)


def numbers(env):
    return env.from_collection([("a", 1, 1)], KIND)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda a, b: a.join(b).where(0).equal_to(0).apply(lambda one, two: one), ["no window", "window(assigner)"]),
        (lambda a, b: a.co_group(b).where(0).window(None), ["no key for the second stream", "equal_to"]),
        (lambda a, b: a.join(b).window(None), ["no key for the first stream", "where"]),
        (lambda a, b: a.join(b).where(0).equal_to(1), ["String", "Long", "key_type"]),
        (lambda a, b: a.join(b).where(0).equal_to(0).window(5), ["not a window assigner"]),
        (
            lambda a, b: a.join(b).where(0).equal_to(0).window(ASSIGNERS["tumbling"]).apply(lambda one: one),
            ["JoinFunction", "2 arguments"],
        ),
        (lambda a, b: a.key_by(0).interval_join(b), ["two keyed streams"]),
        (lambda a, b: a.key_by(0).interval_join(b.key_by(0)).process(Pairs()), ["no bounds"]),
        (lambda a, b: a.key_by(0).interval_join(b.key_by(0)).between(5, 4), ["5 ms to 4 ms"]),
        (
            lambda a, b: a.key_by(0).interval_join(b.key_by(0)).between(5, 5).lower_bound_exclusive().process(Pairs()),
            ["6 ms to 5 ms", "exclusive"],
        ),
        (lambda a, b: a.key_by(0).interval_join(b.key_by(0)).between(1, 2).process(print), ["ProcessJoinFunction"]),
    ],
)
def test_an_invalid_join_is_refused_while_it_is_built(env, build, words):
    refused(lambda: build(numbers(env), numbers(env)), *words)


def test_an_interval_join_needs_timestamps(env):
    numbers(env).key_by(0).interval_join(numbers(env).key_by(0)).between(-1, 1).process(Pairs()).print()
    refused(env.execute, "without a timestamp", "record ('a', 1, 1)")


def test_a_join_function_that_fails_names_key_and_record(env):
    join = timed(env, [("a", 1, 1)]).key_by(0).interval_join(timed(env, [("a", 1, 0)]).key_by(0)).between(0, 0)

    class Divides(ProcessJoinFunction):
        def process_element(self, left, right, ctx):
            yield left[2] // right[2]

    join.process(Divides()).name("ratio").print()
    refused(env.execute, "ZeroDivisionError", "in operator 'ratio'", "key 'a'")


def test_late_records_of_an_interval_join_go_to_the_output_of_their_side():
    early, tardy = OutputTag("left", KIND), OutputTag("right", KIND)

    def define(left, right):
        join = left.key_by(0).interval_join(right.key_by(0)).between(-5, 5)
        return join.side_output_left_late_data(early).side_output_right_late_data(tardy).process(Pairs())

    with OperatorHarness(define, input_types=[KIND, KIND], side_outputs=[early, tardy]) as harness:
        harness.watermark(10)
        harness.process(("a", 9, 1), 9, side=0)
        harness.process(("a", 10, 2), 10, side=0)
        harness.process(("a", 8, 3), 8, side=1)
        harness.process(("a", 11, 4), 11, side=1)
        assert harness.side_output(early) == [(("a", 9, 1), 9)]
        assert harness.side_output(tardy) == [(("a", 8, 3), 8)]
        assert harness.take_output() == [((2, 4), 11)]
        assert harness.counter("numLateRecordsDropped") == 2
        harness.watermark(15)  # the left record cannot match any more
        assert harness.state("join/left") == {}
        assert harness.state("join/right") == {"a": [(11, ("a", 11, 4))]}
        harness.watermark(16)
        assert harness.state("join/right") == {}
