"""A context that the program and the engine stop at the same time."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from pyspark import SparkContext

from millstream.engine.spark import session
from millstream.engine.spark.session import StopOnce


class _Server:
    """The server of a context's accumulators, which takes a while to end."""

    def __init__(self) -> None:
        self.ended = 0

    def shutdown(self) -> None:
        time.sleep(0.1)
        self.ended += 1


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> Any:
    made: Any = SparkContext.__new__(SparkContext)
    made._jsc, made._accumulatorServer = None, _Server()
    monkeypatch.setattr(SparkContext, "_active_spark_context", made)
    return made


def test_two_threads_stop_a_context_once(context: Any) -> None:
    server, stop = context._accumulatorServer, StopOnce(context)
    threads = [threading.Thread(target=stop) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.ended == 1
    assert SparkContext._active_spark_context is None


def test_a_second_stop_leaves_the_context_that_was_started_after_the_first(context: Any) -> None:
    stop = StopOnce(context)
    stop()
    SparkContext._active_spark_context = later = object()
    stop()
    assert SparkContext._active_spark_context is later


def test_a_context_that_was_forgotten_is_not_stopped_again(context: Any) -> None:
    stop = StopOnce(context)
    stop.forget()
    SparkContext._active_spark_context = later = object()
    stop()
    assert SparkContext._active_spark_context is later


def test_a_hanging_stop_is_not_waited_for_forever(context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hangs, ends = threading.Event(), threading.Event()

    class _Hanging(_Server):
        def shutdown(self) -> None:
            hangs.set()
            ends.wait(30)

    context._accumulatorServer = _Hanging()
    monkeypatch.setattr(session, "_STOP_SECONDS", 0.1)
    stop = StopOnce(context)
    first = threading.Thread(target=stop)
    first.start()
    assert hangs.wait(30)
    stop()
    ends.set()
    first.join()
