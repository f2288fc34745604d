"""Functions that run between epochs, in the workers of their slots."""

from __future__ import annotations

import functools
import os
import time
from typing import Any

import pytest

from millstream.common import Types
from millstream.connector.slot_task import SlotTask
from millstream.datastream import StreamExecutionEnvironment
from millstream.engine.contract import Deployment
from millstream.engine.spark.failures import SparkFailed
from millstream.engine.spark.resident.engine import create_engine
from millstream.errors import ExternalError, InternalError, UserError
from millstream.graph.execution_plan import execution_plan
from millstream.graph.job_graph import job_graph
from millstream.testing.inline_engine import InlineEngine


def deployment() -> Deployment:
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    env.from_collection([1, 2], Types.LONG()).print()
    nothing: Any = None
    return Deployment(
        "job/1", execution_plan(job_graph(env._graph(), "tasks")), files=nothing, local="", backend="hashmap"
    )


ON_SPARK = ("jobs", "resident")


@pytest.fixture(params=["inline", *ON_SPARK])
def engine(request):
    if request.param != "inline":
        request.getfixturevalue("spark_context")
    made = InlineEngine() if request.param == "inline" else create_engine({"millstream.engine": request.param})
    made.deploy(deployment())
    yield made
    made.close()


def name_place(slot: int) -> list[int]:
    return [slot, os.getpid()]


def places(engine, slots) -> list[list[int]]:
    return engine.run_tasks([SlotTask(slot, functools.partial(name_place, slot)) for slot in slots])


def raise_problem(problem: Exception) -> None:
    raise problem


def test_results_come_in_the_order_of_the_tasks(engine):
    assert [slot for slot, _ in places(engine, [1, 0, 1, 7])] == [1, 0, 1, 7]
    assert engine.run_tasks([]) == []


def test_a_failure_keeps_its_domain_text_and_hint(engine):
    for problem in (UserError("no", hint="do"), ExternalError("gone")):
        with pytest.raises(type(problem)) as raised:
            engine.run_tasks([SlotTask(0, functools.partial(raise_problem, problem))])
        assert str(raised.value) == str(problem)
    with pytest.raises(InternalError, match=r"raise_problem[\s\S]*KeyError: 'x'"):
        engine.run_tasks([SlotTask(1, functools.partial(raise_problem, KeyError("x")))])


def rendezvous(directory: str, own: int, other: int) -> bool:
    """Whether both tasks run at the same time."""
    with open(os.path.join(directory, str(own)), "w", encoding="utf-8"):
        pass
    until = time.monotonic() + 60
    while not os.path.exists(os.path.join(directory, str(other))):
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


@pytest.mark.parametrize("engine", ON_SPARK, indirect=True)
def test_slots_keep_their_workers_and_run_in_parallel(engine, tmp_path):
    first, again = dict(places(engine, [0, 1])), dict(places(engine, [0, 1]))
    assert first == again
    assert first[0] != first[1]
    both = [SlotTask(own, functools.partial(rendezvous, str(tmp_path), own, 1 - own)) for own in (0, 1)]
    assert engine.run_tasks(both) == [True, True]


def die_once(path: str) -> int:
    if not os.path.exists(path):
        with open(path, "w", encoding="utf-8"):
            os._exit(1)
    return os.getpid()


@pytest.mark.parametrize("engine", ON_SPARK, indirect=True)
def test_a_task_whose_worker_dies_runs_again(engine, tmp_path):
    assert engine.run_tasks([SlotTask(0, functools.partial(die_once, str(tmp_path / "died")))])[0] > 0
    with pytest.raises(SparkFailed, match="worker"):
        engine.run_tasks([SlotTask(0, functools.partial(os._exit, 1))])
