"""Slots keep their Python workers, as long as each has a core of its own."""

import os

import pytest

from millstream.common import Configuration, Types, WatermarkStrategy
from millstream.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from millstream.datastream.connectors.number_seq import NumberSequenceSource

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
