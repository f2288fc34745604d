"""Programs that change between a savepoint and the next start."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from millstream.cluster.failures import StateRefused
from millstream.common import Types
from millstream.common.watermark_strategy import WatermarkStrategy
from millstream.datastream.functions import KeyedProcessFunction, ProcessWindowFunction
from millstream.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from millstream.testing.feed import Feed
from millstream.times import Time

SEEN: list = []
STORED: list = []


@dataclass
class Old:
    total: int
    note: str


@dataclass
class New:
    note: str
    extra: list[str] = field(default_factory=lambda: ["new"])
    amount: float = field(default=0.0, metadata={"renamed_from": "total"})


class Keep(KeyedProcessFunction):
    """Writes values to three states, or emits their content."""

    def __init__(self, value_type, element, entry, ttl=None, make=None):
        self.types, self.ttl, self.make = (value_type, element, entry), ttl, make

    def open(self, runtime_context):
        value, element, entry = self.types
        value, listed = ValueStateDescriptor("value", value), ListStateDescriptor("list", element)
        mapped = MapStateDescriptor("map", Types.STRING(), entry)
        for each in (value, listed, mapped):
            if self.ttl is not None:
                each.enable_time_to_live(StateTtlConfig.new_builder(self.ttl).build())
        self.value = runtime_context.get_state(value)
        self.list = runtime_context.get_list_state(listed)
        self.map = runtime_context.get_map_state(mapped)

    def process_element(self, record, ctx):
        if record[1] is None:
            SEEN.append((record[0], self.value.value(), list(self.list.get()), dict(self.map.items())))
            return
        made = self.make(record[1])
        STORED.append(record)
        self.value.update(made)
        self.list.add(made)
        self.map.put("k", made)
        yield from ()


def name(record):
    return record[0]


def number(record):
    return int(record[0][1:])


def start(env, feed, function, path=None, key_type=None, key=name):
    if path is not None:
        env._configuration.set_string("execution.state-recovery.path", path)
    stream = env.from_source(feed, WatermarkStrategy.no_watermarks(), "feed").uid("feed")
    stream.key_by(key, key_type=key_type).process(function).uid("keep").print()
    return env.execute_async("migrating")


def migrate(
    environment,
    eventually,
    before,
    after,
    values,
    form="CANONICAL",
    backend="hashmap",
    old_key=None,
    new_key=None,
    key=name,
):
    """What the second program sees of the values that the first one stored."""
    SEEN.clear()
    STORED.clear()
    feed = Feed.of(*((f"k{place}", value) for place, value in enumerate(values)))
    options = {"state__backend__type": backend}
    client = start(environment(**options), feed, before, key_type=old_key)
    eventually(lambda: len(STORED) == len(values))
    path = client.stop_with_savepoint(False, format_type=form).result(60)
    feed.give(*((f"k{place}", None) for place in range(len(values)))).close()
    again = start(environment(parallelism=1, **options), feed, after, path, new_key, key)
    again.get_job_execution_result().result(60)
    return sorted(SEEN, key=str)


OLD = Keep(Old, Old, Old, make=lambda number: Old(number, f"n{number}"))


@pytest.mark.parametrize("backend", ["hashmap", "lmdb"])
@pytest.mark.parametrize("form", ["CANONICAL", "NATIVE"])
def test_records_evolve_in_value_list_and_map_state(environment, eventually, form, backend):
    found = migrate(environment, eventually, OLD, Keep(New, New, New), [1, 2], form, backend)
    one, two = New("n1", ["new"], 1.0), New("n2", ["new"], 2.0)
    assert found == [("k0", one, [one], {"k": one}), ("k1", two, [two], {"k": two})]


@pytest.mark.parametrize("backend", ["hashmap", "lmdb"])
def test_a_time_to_live_is_enabled_and_disabled(environment, eventually, backend):
    plain = Keep(int, int, int, make=int)
    timed = Keep(int, int, int, ttl=Time.hours(1), make=int)
    expected = [("k0", 5, [5], {"k": 5})]
    assert migrate(environment, eventually, plain, timed, [5], backend=backend) == expected
    assert migrate(environment, eventually, timed, plain, [5], backend=backend) == expected


def test_numbers_widen(environment, eventually):
    before = Keep(Types.INT(), Types.INT(), Types.INT(), make=int)
    after = Keep(Types.LONG(), Types.DOUBLE(), Types.BIG_INT())
    assert migrate(environment, eventually, before, after, [7]) == [("k0", 7, [7.0], {"k": 7})]


@pytest.mark.parametrize("form", ["CANONICAL", "NATIVE"])
def test_incompatible_state_is_refused_once_with_names_types_and_a_hint(environment, eventually, form):
    before = Keep(Types.LONG(), Types.INT(), Types.INT(), make=int)
    after = Keep(Types.STRING(), Types.INT(), Types.INT())
    with pytest.raises(StateRefused) as refused:
        migrate(environment, eventually, before, after, [7], form)
    message = str(refused.value)
    assert "the value of state 'value' of operator 'KEYED PROCESS'" in message
    assert "written as Long, declared as String" in message
    assert "millstream.state_processor" in message
    assert not SEEN


def test_a_key_of_another_type_is_refused(environment, eventually):
    same = Keep(int, int, int, make=int)
    with pytest.raises(StateRefused, match=r"the key of state 'value'.*written as String, declared as Long"):
        migrate(
            environment,
            eventually,
            same,
            Keep(int, int, int),
            [1],
            old_key=Types.STRING(),
            new_key=Types.LONG(),
            key=number,
        )


def test_a_key_whose_type_is_declared_later_is_the_same_key(environment, eventually):
    same = Keep(int, int, int, make=int)
    assert migrate(environment, eventually, same, Keep(int, int, int), [1], new_key=Types.STRING()) == [
        ("k0", 1, [1], {"k": 1})
    ]


def test_the_duration_is_not_part_of_the_type(environment, eventually):
    short = Keep(int, int, int, ttl=Time.hours(1), make=int)
    longer = Keep(int, int, int, ttl=Time.hours(5))
    assert migrate(environment, eventually, short, longer, [3]) == [("k0", 3, [3], {"k": 3})]


class Late(ProcessWindowFunction):
    """Asks for its state only when a window fires."""

    def __init__(self, kind, make):
        self.kind, self.make = kind, make

    def process(self, key, context, elements):
        state = context.global_state().get_state(ValueStateDescriptor("late", self.kind))
        SEEN.append((key, state.value()))
        state.update(self.make(len(list(elements))))
        yield key


@pytest.mark.parametrize("backend", ["hashmap", "lmdb"])
@pytest.mark.parametrize("form", ["CANONICAL", "NATIVE"])
def test_state_that_is_declared_late_evolves_too(environment, eventually, form, backend):
    SEEN.clear()
    feed = Feed.of("a", "a")

    def begin(function, path=None):
        env = environment(state__backend__type=backend)
        if path is not None:
            env._configuration.set_string("execution.state-recovery.path", path)
        stream = env.from_source(feed, WatermarkStrategy.no_watermarks(), "feed").uid("feed")
        stream.key_by(lambda record: record).count_window(2).process(function).uid("late").print()
        return env.execute_async("late")

    client = begin(Late(Old, lambda count: Old(count, "old")))
    eventually(lambda: SEEN)
    path = client.stop_with_savepoint(False, format_type=form).result(60)
    feed.give("a", "a", "a", "a").close()
    begin(Late(New, lambda count: New("new", [], float(count))), path).get_job_execution_result().result(60)
    found = list(SEEN)
    assert found == [("a", None), ("a", New("old", ["new"], 2.0)), ("a", New("new", [], 2.0))]
