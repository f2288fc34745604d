"""Samples of the call stack of a task."""

from __future__ import annotations

import threading

import pytest

from millstream.runtime import stack_samples
from millstream.runtime.stack_samples import Sampling, StackSampler


def user_function(is_over: threading.Event) -> int:
    number = 0
    while not is_over.is_set():
        number += 1
    return number


def wait(is_over: threading.Event) -> None:
    is_over.wait()


def recurse(depth: int, is_over: threading.Event) -> None:
    if depth:
        recurse(depth - 1, is_over)
    else:
        user_function(is_over)


class Ended(threading.Event):
    """An event that is set when the sampler has enough samples."""

    def __init__(self, sampler: StackSampler) -> None:
        super().__init__()
        self.watcher = threading.Thread(target=self._watch, args=(sampler,))
        self.watcher.start()

    def _watch(self, sampler: StackSampler) -> None:
        while sum(sampler._on.values()) + sum(sampler._off.values()) < 5:
            threading.Event().wait(0.002)
        self.set()


def run_task(function, *arguments, depth: int = 100) -> dict:
    sampler = StackSampler(Sampling(0.002, depth), run_task.__code__)
    sampler.start()
    function(*arguments, Ended(sampler))
    return sampler.stop()


def names(stacks: list) -> set[str]:
    return {name.split(" ")[0] for stack, _ in stacks for name in stack}


def test_a_function_that_computes_is_on_the_cpu_and_one_that_waits_is_not() -> None:
    assert "user_function" in names(run_task(user_function)["on"])
    waiting = run_task(wait)
    assert "wait" in names(waiting["off"])
    assert "run_task" not in names(waiting["off"]), "stacks begin inside the task"


def test_stacks_have_a_limited_depth_and_name_files() -> None:
    reported = run_task(recurse, 50, depth=10)
    stacks = [stack for kind in reported.values() for stack, _ in kind]
    assert max(map(len, stacks)) == 10
    assert any("recurse (runtime/test_stack_samples.py:" in name for stack in stacks for name in stack)


def test_the_number_of_stacks_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack_samples, "MAX_STACKS", 0)
    reported = run_task(user_function)
    assert {stack for kind in reported.values() for stack, _ in kind} == {(stack_samples.OTHER,)}
