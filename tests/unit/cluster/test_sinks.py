"""Staged output becomes visible with its checkpoint, in order, and is aborted if its epoch will be replayed."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from millstream.checkpoint.metadata import OperatorSnapshot
from millstream.cluster.sinks import OutputNotClaimed, Sinks
from millstream.connector.sink import Committer, Sink, ThisProcess
from millstream.event_time.watermarks import MIN_WATERMARK
from millstream.runtime.memory import SubtaskMemory
from millstream.runtime.operators.sink import SinkMemory, SinkSpec
from millstream.runtime.report import TaskReport


class Recording(Sink, Committer):
    def __init__(self, with_epoch=False, driver_only=False):
        self.commits_with_epoch, self.driver_only = with_epoch, driver_only
        self.done = []

    def create_writer(self, context):
        raise AssertionError

    def create_committer(self):
        return self

    def commit(self, checkpoint, committables):
        self.done.append((checkpoint, list(committables)))

    def abort(self, committables):
        self.done.append(("abort", list(committables)))


class Failing(Recording):
    """Fails to commit, once."""

    failures = 1

    def commit(self, checkpoint, committables):
        if self.failures:
            self.failures -= 1
            raise OSError("no")
        super().commit(checkpoint, committables)


def sinks(*all_sinks, with_epoch=False, allow_unclaimed=False):
    names = ("out", "out1", "out2", "out3")
    named = zip(names, all_sinks, strict=False)
    nodes = tuple(SimpleNamespace(id=name, name=name, spec=SinkSpec(sink)) for name, sink in named)
    plan = SimpleNamespace(vertices=(SimpleNamespace(task=SimpleNamespace(operators=nodes)),))
    return Sinks(plan, ThisProcess(), with_epoch=with_epoch, allow_unclaimed=allow_unclaimed)


def published(checkpoint, committables, epoch=0):
    return SimpleNamespace(checkpoint=checkpoint, committables=committables, epoch=epoch)


def report(subtask, *staged):
    return TaskReport("v", subtask, b"", results={"out": list(staged)})


def test_output_waits_for_its_checkpoint_in_the_order_of_epochs_and_subtasks():
    sink = Recording()
    made = sinks(sink)
    made.stage([report(1, "b"), report(0, "a")])
    made.stage([report(0, "c")])
    assert sink.done == []
    assert made.staged_committables() == {"out": ("a", "b", "c")}
    made.commit(7)
    assert sink.done == [(7, ["a", "b", "c"])]
    assert made.staged_committables() == {}


def test_only_the_output_of_a_discarded_run_is_removed():
    sink = Recording()
    made = sinks(sink)
    made.stage([report(0, "a")])
    made.discard([report(1, "c"), report(0, "b")])
    assert sink.done == [("abort", ["b", "c"])]
    assert made.staged_committables() == {"out": ("a",)}


def test_output_of_replayed_epochs_is_aborted_unless_a_checkpoint_names_it():
    sink = Recording()
    made = sinks(sink)
    made.stage([report(0, "a", "b")])
    made.abort(published(3, {"out": ["a"]}))
    made.abort()
    assert sink.done == [("abort", ["b"])]


def test_the_watermark_of_a_sink_is_the_least_of_its_active_subtasks():
    def told(*memories):
        sink = Recording()
        sink.reached = lambda watermark, now: sink.done.append((watermark, now))
        operator = OperatorSnapshot("out", "out", None, len(memories), 128, (), memories)
        sinks(sink).notify_watermarks([operator, replace(operator, operator="other")], 9)
        return sink.done

    at_5, at_3, nowhere = SubtaskMemory(watermark=5), SubtaskMemory(watermark=3), SubtaskMemory()
    idle = [SinkMemory(idle=True)]
    assert told(at_5, at_3) == [(3, 9)]
    assert told(at_5, nowhere) == [(MIN_WATERMARK, 9)]
    assert told(at_5, at_3.with_parts(idle)) == [(5, 9)]
    assert told(nowhere.with_parts(idle)) == [(MIN_WATERMARK, 9)]


def test_recovery_repeats_the_commit():
    sink = Recording()
    sinks(sink).recommit(3, {"out": ("a",), "gone": ()})
    assert sink.done == [(3, ["a"])]


def test_a_sink_without_staging_commits_with_the_epoch():
    sink = Recording(with_epoch=True)
    made = sinks(sink)
    made.stage([report(0, "a")])
    assert sink.done == [(-1, ["a"])]
    assert made.staged_committables() == {}


def test_rows_in_the_driver_are_not_stored_and_wait_for_the_checkpoint():
    sink = Recording(driver_only=True)
    made = sinks(sink)
    made.stage([report(0, object())])
    assert made.staged_committables() == {}
    assert sink.done == []
    shown = Recording(driver_only=True)
    sinks(shown, with_epoch=True).stage([report(0, "a")])
    assert shown.done == [(-1, ["a"])]


def test_rows_in_the_driver_are_delivered_once_if_a_late_checkpoint_exists():
    """The checkpoint expired, and the recovery found it: its epochs are not run again."""
    sink = Recording(driver_only=True)
    made = sinks(sink)
    made.stage([report(0, "a")], 1)
    made.stage([report(0, "b")], 2)
    made.abort(published(4, {}, epoch=1))
    made.recommit(4, {})
    made.stage([report(0, "b again")], 2)
    made.commit(5)
    assert sink.done == [("abort", ["b"]), (4, ["a"]), (5, ["b again"])]


def test_the_reader_of_the_job_gets_output_last():
    order = []

    class Ordered(Recording):
        def commit(self, checkpoint, committables):
            order.append(*committables)

    made = sinks(Ordered(driver_only=True), Ordered())
    made.stage([TaskReport("v", 0, b"", results={"out": ["row"], "out1": ["file"]})])
    made.commit(1)
    assert order == ["file", "row"]


def test_output_of_a_failed_commit_is_committed_on_cancel_and_reported_on_failure():
    def ended(failures, **how):
        sink = Failing()
        made = sinks(sink)
        made.stage([report(0, "a")], 1)
        with pytest.raises(OSError, match="no"):
            made.commit(7)
        made.stage([report(0, "b")], 2)
        sink.failures = failures
        return sink.done, made.end(is_kept=lambda checkpoint: True, **how)

    done, left = ended(0, retry=True)
    assert (done, left) == ([(7, ["a"]), ("abort", ["b"])], [])
    for retry in (True, False):
        done, (left,) = ended(1, retry=retry)
        assert done == [("abort", ["b"])]
        assert (left.sink, left.checkpoint, left.output) == ("out", 7, "a")
    assert "chk-7 is kept: a job that starts from it" in left.report("chk-7")
    assert "No checkpoint or savepoint that names it is kept" in left.report(None)


def test_output_of_a_late_checkpoint_is_committed_on_cancel():
    sink = Recording()
    made = sinks(sink)
    made.stage([report(0, "a")], 1)
    made.stage([report(0, "b")], 2)
    made.mark_published(4, epoch=1)
    assert made.end(retry=True, is_kept=lambda checkpoint: True) == []
    assert sink.done == [(4, ["a"]), ("abort", ["b"])]


def test_output_without_a_commit_attempt_is_removed_if_its_checkpoint_is_not_kept():
    class Failing(Recording):
        def commit(self, checkpoint, committables):
            raise OSError("no")

    first, second = Failing(), Recording()
    made = sinks(first, second)
    with pytest.raises(OSError, match="no"):
        made.recommit(1, {"out": ("a",), "out1": ("b",)})
    (left,) = made.end(retry=False, is_kept=lambda checkpoint: False)
    assert left.sink == "out"
    assert (first.done, second.done) == ([], [("abort", ["b"])])


def test_output_of_a_sink_that_the_program_does_not_have_is_refused(caplog):
    sink = Recording()
    with pytest.raises(OutputNotClaimed, match=r"checkpoint 3 has staged output .*: 2 of sink gone"):
        sinks(sink).recommit(3, {"out": ("a",), "gone": ("x", "y")})
    assert sink.done == []
    sinks(sink, allow_unclaimed=True).recommit(3, {"out": ("a",), "gone": ("x", "y")})
    assert sink.done == [(3, ["a"])]
    assert "output is dropped: checkpoint 3 has staged output" in caplog.text


def test_a_failing_sink_does_not_prevent_others_from_committing():
    first, second = Failing(), Recording(driver_only=True)
    third, fourth = Failing(driver_only=True), Recording()
    made = sinks(first, second, third, fourth)
    made.stage([TaskReport("v", 0, b"", results={"out": ["a"], "out1": ["b"], "out2": ["c"], "out3": ["d"]})])
    named = made.staged_committables()
    with pytest.raises(OSError, match="no"):
        made.commit(7)
    made.abort(published(7, named))
    assert (second.done, fourth.done) == ([(7, ["b"])], [(7, ["d"])])
    made.recommit(7, named)
    assert (first.done, second.done, third.done) == ([(7, ["a"])], [(7, ["b"])], [(7, ["c"])])
    made.recommit(7, {})
    assert third.done == [(7, ["c"])]


class Broken(Recording):
    """Fails to commit while `is_broken` is set."""

    is_broken = True

    def commit(self, checkpoint, committables):
        if self.is_broken:
            raise OSError("no")
        super().commit(checkpoint, committables)


def test_output_is_not_removed_once_its_checkpoint_is_published():
    sink, reader = Recording(), Recording(driver_only=True)
    made = sinks(sink, reader)
    made.stage([TaskReport("v", 0, b"", results={"out": ["a"], "out1": ["row"]})], 1)
    made.mark_published(4)
    assert made.staged_committables() == {}
    made.stage([TaskReport("v", 0, b"", results={"out": ["b"], "out1": ["later"]})], 2)
    (left,) = made.end(retry=False, is_kept=lambda checkpoint: True)
    assert (left.checkpoint, left.output) == (4, "a")
    assert (sink.done, reader.done) == ([("abort", ["b"])], [("abort", ["later"])])


def test_the_last_of_several_late_checkpoints_names_all_output():
    sink = Recording()
    made = sinks(sink)
    for epoch, name in enumerate("abc", 1):
        made.stage([report(0, name)], epoch)
    made.mark_published(4, epoch=1)
    made.mark_published(5, epoch=2)
    assert made.staged_committables() == {"out": ("c",)}
    assert made.end(retry=True, is_kept=lambda checkpoint: True) == []
    assert sink.done == [(5, ["a", "b"]), ("abort", ["c"])]


def test_output_of_other_checkpoints_is_removed_unless_it_may_be_visible():
    sink, tried = Recording(), Broken()
    made = sinks(sink, tried)
    made.stage([report(0, "a")], 1)
    made.commit(1)
    made.stage([TaskReport("v", 0, b"", results={"out": ["b"]})], 2)
    made.mark_published(2)
    made.abort(published(1, {"out": ["a"]}, epoch=1))
    assert sink.done == [(1, ["a"]), ("abort", ["b"])]
    made.stage([TaskReport("v", 0, b"", results={"out1": ["c"]})], 2)
    with pytest.raises(OSError, match="no"):
        made.commit(3)
    made.abort(published(1, {"out": ["a"]}, epoch=1))
    assert tried.done == []
    assert made.end(retry=True, is_kept=lambda checkpoint: True) == []


@pytest.mark.parametrize("driver_only", [False, True])
def test_a_commit_at_the_end_of_the_job_counts_as_under_way(driver_only):
    class Asking(Broken):
        def commit(self, checkpoint, committables):
            super().commit(checkpoint, committables)
            self.was_under_way = made.cancel(10)

    sink = Asking(driver_only=driver_only)
    made = sinks(sink)
    made.stage([report(0, "a")])
    with pytest.raises(OSError, match="no"):
        made.commit(1)
    sink.is_broken = False
    assert not made.cancel(10)
    assert made.end(retry=True, is_kept=lambda checkpoint: True) == []
    assert sink.was_under_way
    assert not made.cancel(10)


def test_rows_that_cannot_be_delivered_at_the_end_hide_nothing_else(caplog):
    sink, reader, second = Broken(), Broken(driver_only=True), Broken(driver_only=True)
    made = sinks(sink, reader, second)
    made.stage([TaskReport("v", 0, b"", results={"out": ["a"], "out1": ["row"], "out2": ["other row"]})])
    with pytest.raises(OSError, match="no"):
        made.commit(1)
    second.is_broken = False
    (left,) = made.end(retry=True, is_kept=lambda checkpoint: True)
    assert (left.sink, left.output) == ("out", "a")
    assert second.done == [(0, ["other row"])]
    assert "rows of sink 'out1' were not delivered: no" in caplog.text


def test_every_committer_is_closed_even_if_others_fail(caplog):
    class Closing(Recording):
        def __init__(self, problem=None):
            super().__init__()
            self.problem = problem

        def close(self):
            self.done.append("closed")
            if self.problem is not None:
                raise OSError(self.problem)

    committers = Closing("first"), Closing("second"), Closing()
    with pytest.raises(OSError, match="first"):
        sinks(*committers).close()
    assert [each.done for each in committers] == 3 * [["closed"]]
    assert "another sink failed to close: second" in caplog.text
