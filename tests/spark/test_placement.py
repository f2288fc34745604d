"""Slots keep their Python workers, as long as each has a core of its own."""

import os
from types import SimpleNamespace

import pytest

from millstream.common import Configuration, Types, WatermarkStrategy
from millstream.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.engine.spark import placement

pytestmark = pytest.mark.usefixtures("spark_context")


class Place(KeyedProcessFunction):
    """In which process a subtask runs."""

    def open(self, runtime_context):
        self._subtask = runtime_context.get_index_of_this_subtask()

    def process_element(self, value, ctx):
        yield self._subtask, os.getpid()


def places() -> dict[int, set[int]]:
    configuration = Configuration()
    configuration.set_string("millstream.epoch.max-records", "50")
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    numbers = env.from_source(NumberSequenceSource(0, 999), WatermarkStrategy.no_watermarks(), "numbers")
    keyed = numbers.key_by(lambda value: value, Types.LONG())
    found: dict[int, set[int]] = {}
    with keyed.process(Place(), Types.TUPLE([Types.INT(), Types.INT()])).execute_and_collect() as rows:
        for subtask, process in rows:
            found.setdefault(subtask, set()).add(process)
    return found


def test_a_slot_keeps_its_worker():
    found = places()
    assert sorted(found) == [0, 1]
    assert [len(processes) for processes in found.values()] == [1, 1], "slots wandered"
    assert found[0] != found[1]


def test_the_first_epoch_waits_for_the_executors_of_a_new_cluster(monkeypatch):
    coming = [0, 0, 1, 1, 2, 3, 4]
    context = SimpleNamespace(master="spark://one:7077")
    monkeypatch.setattr(
        placement, "count_running_slots", lambda context: coming.pop(0) if len(coming) > 1 else coming[0]
    )
    placement.await_slots(context, 4)
    assert coming == [4]
    monkeypatch.setattr(placement, "_NEXT_EXECUTOR", 0.05)
    coming[:] = [1, 2]
    placement.await_slots(context, 4)  # no more come: the job starts with the existing ones
    assert coming == [2]


@pytest.mark.parametrize(("told", "on_demand"), [("true", True), ("false", False), (None, False)])
def test_executors_on_demand_are_detected(told, on_demand):
    settings = {} if told is None else {"spark.dynamicAllocation.enabled": told}
    assert placement._on_demand(SimpleNamespace(getConf=lambda: settings)) is on_demand
