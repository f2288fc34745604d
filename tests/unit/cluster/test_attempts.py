"""An epoch is accepted when every channel was read as the reported attempt of its sender sent it."""

from types import SimpleNamespace

import pytest

from millstream.cluster.attempts import RUNS, AttemptsDisagree, find_disagreement, run_until_reports_agree
from millstream.engine.contract import EpochResult
from millstream.errors import InternalError
from millstream.runtime.block_sums import sum_blocks
from millstream.runtime.report import TaskReport

A, B, R = b"first", b"other", b"reader"


def vertex(name, parallelism=2):
    return SimpleNamespace(task=SimpleNamespace(vertex=name, name=name.upper(), parallelism=parallelism))


PLAN = SimpleNamespace(
    vertices=(vertex("up", 1), vertex("down")),
    job=SimpleNamespace(edges=(SimpleNamespace(upstream="up", downstream="down"),)),
)


def reports(sender, sent, *read):
    """The reports of one sender and its two readers."""
    down = [
        TaskReport("down", subtask, R, read={0: sum_blocks((0, 0, subtask, *each) for each in counts.items())})
        for subtask, counts in enumerate(read)
    ]
    sums = {0: sum_blocks((0, 0, subtask, sender, count) for subtask, count in sent.items())}
    return [TaskReport("up", 0, sender, sent=sums), *down]


def test_reports_of_one_run_agree():
    assert find_disagreement(PLAN, reports(A, {0: 2, 1: 1}, {A: 2}, {A: 1})) is None


def test_a_task_that_was_sent_nothing_agrees_with_every_attempt_that_sent_it_nothing():
    assert find_disagreement(PLAN, reports(B, {0: 2}, {B: 2}, {})) is None


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ({0: 2, 1: 1}, ({B: 2}, {A: 1})),  # another attempt
        ({0: 2, 1: 1}, ({B: 2}, {})),  # the attempt that was read sent nothing to the second reader
        ({0: 1}, ({}, {B: 1})),  # a block came to another reader
        ({0: 2}, ({B: 2}, {A: 1})),  # the attempt that reported did not
        ({0: 2, 1: 1}, ({B: 1}, {B: 1})),  # a block was lost
        ({0: 2, 1: 1}, ({B: 2}, {A: 1, B: 1})),  # both were read
    ],
)
def test_every_way_to_read_another_attempt_is_detected(sent, read):
    assert "DOWN has read other blocks of UP" in find_disagreement(PLAN, reports(B, sent, *read))


def test_a_missing_or_duplicate_report_is_refused():
    whole = reports(A, {})
    with pytest.raises(InternalError, match="1 reports of 1 subtasks"):
        find_disagreement(PLAN, whole)
    with pytest.raises(InternalError, match="4 reports of 3 subtasks"):
        find_disagreement(PLAN, [*reports(A, {}, {}, {}), whole[0]])


def test_an_epoch_is_run_until_its_reports_agree():
    bad, good = reports(B, {0: 1}, {A: 1}, {}), reports(B, {0: 1}, {B: 1}, {})
    results, discarded = iter([bad, bad, good]), []
    result = run_until_reports_agree(PLAN, 7, lambda: EpochResult(tuple(next(results))), discarded.append)
    assert list(result.reports) == good
    assert [list(each) for each in discarded] == [bad, bad]


def test_an_epoch_whose_reports_never_agree_fails():
    discarded = []
    bad = tuple(reports(B, {0: 1}, {A: 1}, {}))
    with pytest.raises(AttemptsDisagree, match="epoch 7 was run 10 times"):
        run_until_reports_agree(PLAN, 7, lambda: EpochResult(bad), discarded.append)
    assert len(discarded) == RUNS
