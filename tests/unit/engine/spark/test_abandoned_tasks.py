"""Tasks between epochs on a Spark that does not answer and cannot be killed: the wait ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from millstream.cluster.commit_workers import CommitTimedOut, CommitWorkers
from millstream.connector.slot_task import SlotTask
from millstream.engine.spark.engine import SparkEngine
from millstream.engine.spark.health import SparkLost


@pytest.fixture
def release() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def engine(release: threading.Event) -> SparkEngine:
    """An engine on a Spark of the program's own whose tasks do not end, not even when they are cancelled."""
    made: Any = SparkEngine({})
    made._watch = SimpleNamespace(find_problem=lambda: None)
    made._run_tasks = lambda tasks: release.wait(30)
    return made


def test_tasks_that_do_not_end_when_they_are_cancelled_are_abandoned(engine: SparkEngine) -> None:
    workers = CommitWorkers("run", engine, lambda: None, None, deadline=20, cancellation=20)
    with pytest.raises(CommitTimedOut, match=r"1 tasks between epochs did not end within 0\.02 s"):
        workers.run_tasks([SlotTask(0, int)])


def test_abandoning_the_engine_ends_every_call_of_run_tasks(engine: SparkEngine) -> None:
    problems: list[SparkLost] = []

    def run() -> None:
        try:
            engine.run_tasks([SlotTask(0, int)])
        except SparkLost as problem:
            problems.append(problem)

    threads = [threading.Thread(target=run, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    while len([calls for calls in engine._task_calls if calls._waiting is not None]) < 2:
        threading.Event().wait(0.005)
    engine.abandon("tasks were cancelled and did not end")
    for thread in threads:
        thread.join(10)
    assert [problem.reason for problem in problems] == ["tasks were cancelled and did not end"] * 2
    assert engine._task_calls == []
