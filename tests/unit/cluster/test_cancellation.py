"""Waits of a job: for input, and until it is cancelled."""

from __future__ import annotations

import threading
import time

from millstream.cluster.cancellation import Cancellation
from millstream.cluster.entrypoint import SystemClock


def wait_in_thread(cancellation: Cancellation) -> threading.Thread:
    thread = threading.Thread(target=cancellation.wait_for_input, args=(600,), daemon=True)
    thread.start()
    return thread


def test_input_ends_the_current_wait_or_the_next_one() -> None:
    cancellation = Cancellation(SystemClock(), time.sleep)
    waiting = wait_in_thread(cancellation)
    cancellation.wake()
    waiting.join(30)
    assert not waiting.is_alive()
    cancellation.wake()
    cancellation.wait_for_input(600)


def test_a_cancelled_job_does_not_wait() -> None:
    cancellation = Cancellation(SystemClock(), time.sleep)
    waiting = wait_in_thread(cancellation)
    cancellation.request()
    waiting.join(30)
    assert not waiting.is_alive()
    cancellation.wait_for_input(600)


def test_a_virtual_clock_sleeps_as_long_as_there_is_no_input() -> None:
    slept: list[float] = []
    cancellation = Cancellation(SystemClock(), slept.append)
    cancellation.wait_for_input(2)
    cancellation.wake()
    cancellation.wait_for_input(2)
    cancellation.wait_for_input(3)
    assert slept == [2, 3]
