"""Which slots wait for which."""

from __future__ import annotations

from typing import Any

from millstream.common import WatermarkStrategy
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.blackhole import BlackHoleSink
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.engine.spark.resident.routes import read_routes
from millstream.graph.execution_plan import ExecutionPlan, execution_plan
from millstream.graph.job_graph import job_graph


def plan_of(define: Any, last: int = 2) -> ExecutionPlan:
    """The plan of a source, some transformations, and a sink with parallelism `last`."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    numbers = env.from_source(NumberSequenceSource(0, 9), WatermarkStrategy.no_watermarks(), "n")
    define(numbers).sink_to(BlackHoleSink()).set_parallelism(last)
    return execution_plan(job_graph(env._graph(), "routes"))


def test_an_exchange_by_key_connects_all_slots() -> None:
    plan = plan_of(lambda numbers: numbers.key_by(lambda v: v).reduce(lambda a, b: a + b))
    for slot in range(2):
        routes = read_routes(plan, slot)
        assert routes.senders == {1: {(0, 0), (0, 1)}}
        assert routes.targets == {0: {0, 1}}
        assert routes.peers(slot) == {1 - slot}


def test_slots_without_a_common_channel_are_not_connected() -> None:
    plan = plan_of(lambda numbers: numbers.map(lambda v: v))
    assert read_routes(plan, 0).peers(0) == set()
    plan = plan_of(lambda numbers: numbers.rescale().map(lambda v: v).set_parallelism(4), 4)
    assert [read_routes(plan, slot).peers(slot) for slot in range(4)] == [{1}, {0, 2, 3}, {1}, {1}]
    assert [read_routes(plan, slot).senders for slot in range(4)] == [{1: {(0, up)}} for up in (0, 0, 1, 1)]


def test_only_the_readers_of_a_level_wait_for_it() -> None:
    plan = plan_of(lambda numbers: numbers.global_().map(lambda v: v).set_parallelism(1), 1)
    assert read_routes(plan, 0).senders == {1: {(0, 0), (0, 1)}}
    assert read_routes(plan, 1).senders == {}
    assert read_routes(plan, 1).targets == {0: {0}}
