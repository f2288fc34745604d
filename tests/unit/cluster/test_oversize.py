"""Which failures make epochs smaller."""

import pytest

from millstream.cluster.failures import EpochTimedOut, TaskFailed, to_error
from millstream.cluster.oversize import Oversize, is_too_large
from millstream.cluster.sizing import EpochSize
from millstream.cluster.sources import EpochPlan
from millstream.engine.spark.failures import SparkFailed
from millstream.runtime.report import TaskFailure, pack_failure, unpack_failure

LOST = "Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times, most recent failure: Lost task 0.3: "
PLAN = EpochPlan(7, 0, {"src": {"ranges": [["s", 0, 400, 400]], "splits": [], "end": False}})


def failure_of(domain):
    return to_error(unpack_failure(pack_failure(0, TaskFailure(domain, "v", "out of memory", operator="map"))))


@pytest.mark.parametrize(
    "problem",
    [
        EpochTimedOut(7, 1000),
        failure_of("memory"),
        SparkFailed("Python worker exited unexpectedly (crashed)"),
        SparkFailed(f"{LOST}java.lang.OutOfMemoryError: Java heap space"),
        SparkFailed(f"{LOST}ExecutorLostFailure (executor 1 exited): Container killed for exceeding memory limits"),
    ],
)
def test_deadlines_and_lack_of_memory_count_as_too_large(problem):
    oversize = Oversize(lambda _: None)
    assert oversize.on_failure(PLAN, problem, EpochSize(1.0)).budget == 100
    assert oversize.epoch == 7


@pytest.mark.parametrize(
    "problem", [TaskFailed("no route to host"), failure_of("user"), SparkFailed("Job 3 cancelled")]
)
def test_other_failures_do_not_count_as_too_large(problem):
    assert not is_too_large(problem)
    assert Oversize(lambda _: None).on_failure(PLAN, problem, size := EpochSize(1.0)) is size


def plan(epoch, records):
    return EpochPlan(epoch, 0, {"src": {"ranges": [["s", 0, records, records]], "splits": [], "end": False}})


def test_a_small_epoch_is_reduced_only_if_it_fails_again():
    oversize, problem = Oversize(lambda _: None), SparkFailed("Python worker exited unexpectedly (crashed)")
    size = oversize.on_failure(PLAN, problem, EpochSize(1.0))
    oversize.on_accepted(7)
    assert oversize.on_failure(plan(8, 100), problem, size) is size
    assert oversize.epoch is None
    oversize.on_accepted(8)
    assert oversize.on_failure(plan(9, 100), problem, size) is size
    oversize.on_accepted(8)  # replayed
    assert oversize.on_failure(plan(9, 100), problem, size).budget == 25
    assert oversize.epoch == 9


def test_an_epoch_without_records_does_not_reduce_later_epochs():
    size = EpochSize(1.0)
    assert Oversize(lambda _: None).on_failure(plan(7, 0), EpochTimedOut(7, 1000), size) is size


def test_accepting_the_large_epoch_or_a_later_one_ends_the_reduction():
    oversize = Oversize(lambda _: None)
    oversize.on_failure(PLAN, EpochTimedOut(7, 1000), EpochSize(1.0))
    oversize.on_accepted(6)
    assert oversize.epoch == 7
    oversize.on_accepted(7)
    assert oversize.epoch is None
