"""Operations that clients trigger and poll for."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from millstream.cluster.rest import triggers
from millstream.cluster.rest.triggers import TooManyOperations, Triggers, UnknownTrigger


class Clock:
    now = 0.0


def create(clock: Clock) -> Triggers[str]:
    ids = iter("abcdef")
    return Triggers(lambda: clock.now, lambda: next(ids))


def test_an_id_that_is_used_twice_is_one_operation() -> None:
    operations, started = create(Clock()), []

    def start() -> Future[str]:
        started.append(Future())
        return started[-1]

    assert operations.trigger("job", "x", start) == operations.trigger("job", "x", start) == "x"
    assert operations.get("job", "x") is started[0]
    assert len(started) == 1
    assert operations.trigger("job", None, start) == "a"
    with pytest.raises(UnknownTrigger):
        operations.get("other job", "x")


def test_results_are_dropped_after_five_minutes_and_operations_under_way_are_not() -> None:
    clock, done, running = Clock(), Future(), Future()
    operations = create(clock)
    operations.trigger("job", "done", lambda: done)
    operations.trigger("job", "running", lambda: running)
    clock.now = 1000.0
    done.set_result("path")
    assert operations.get("job", "done").result() == "path"
    clock.now = 1299.0
    assert operations.get("job", "done").result() == "path"
    clock.now = 1301.0
    with pytest.raises(UnknownTrigger):
        operations.get("job", "done")
    assert operations.get("job", "running") is running


def test_the_number_of_operations_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triggers, "_MOST", 2)
    operations = create(Clock())
    for _ in range(2):
        operations.trigger("job", None, Future)
    with pytest.raises(TooManyOperations):
        operations.trigger("job", None, Future)
