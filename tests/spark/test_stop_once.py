"""A context that the program and the engine stop at the same time."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from pyspark import SparkContext

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
