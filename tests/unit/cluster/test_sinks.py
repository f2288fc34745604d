"""What is staged becomes visible with its checkpoint, in order, and is undone when it will be made again."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from millstream.checkpoint.metadata import OperatorSnapshot
from millstream.cluster.sinks import OutputNotClaimed, Sinks
from millstream.model.sink import Committer, Sink, ThisProcess
from millstream.model.watermarks import MIN_WATERMARK
from millstream.runtime.operators.sink import SinkSpec


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


def sinks(*all_sinks, with_epoch=False, allow_unclaimed=False):
    names = ("out", "out1", "out2", "out3")
    nodes = tuple(SimpleNamespace(id=name, spec=SinkSpec(sink)) for name, sink in zip(names, all_sinks, strict=False))
    plan = SimpleNamespace(vertices=(SimpleNamespace(task=SimpleNamespace(operators=nodes)),))
    return Sinks(plan, ThisProcess(), with_epoch=with_epoch, allow_unclaimed=allow_unclaimed)


def report(subtask, *staged):
    return {"subtask": subtask, "results": {"out": list(staged)}}


def test_output_waits_for_its_checkpoint_in_the_order_of_epochs_and_subtasks():
    sink = Recording()
    made = sinks(sink)
    made.stage([report(1, "b"), report(0, "a")])
    made.stage([report(0, "c")])
    assert sink.done == []
    assert made.durable() == {"out": ("a", "b", "c")}
    made.commit(7)
    assert sink.done == [(7, ["a", "b", "c"])]
    assert made.durable() == {}


def test_what_a_discarded_run_staged_is_removed_and_nothing_else():
    sink = Recording()
    made = sinks(sink)
    made.stage([report(0, "a")])
    made.discard([report(1, "c"), report(0, "b")])
    assert sink.done == [("abort", ["b", "c"])]
    assert made.durable() == {"out": ("a",)}


def test_what_will_be_made_again_is_undone_except_what_a_checkpoint_names():
    sink = Recording()
    made = sinks(sink)
    made.stage([report(0, "a", "b")])
    made.abort({"out": ["a"]})
    made.abort()
    assert sink.done == [("abort", ["b"])]


def test_a_sink_is_as_far_as_its_slowest_subtask_that_is_not_idle():
    def told(*memories):
        sink = Recording()
        sink.reached = lambda watermark, now: sink.done.append((watermark, now))
        operator = OperatorSnapshot("out", "out", None, len(memories), 128, (), memories)
        sinks(sink).reached([operator, replace(operator, operator="other")], 9)
        return sink.done

    assert told({"watermark": 5}, {"watermark": 3}) == [(3, 9)]
    assert told({"watermark": 5}, {}) == [(MIN_WATERMARK, 9)]
    assert told({"watermark": 5}, {"watermark": 3, "sink_idle": True}) == [(5, 9)]
    assert told({"sink_idle": True}) == [(MIN_WATERMARK, 9)]


def test_recovery_repeats_the_commit():
    sink = Recording()
    sinks(sink).recommit(3, {"out": ("a",), "gone": ()})
    assert sink.done == [(3, ["a"])]


def test_a_sink_that_may_show_with_the_epoch_does():
    sink = Recording(with_epoch=True)
    made = sinks(sink)
    made.stage([report(0, "a")])
    assert sink.done == [(-1, ["a"])]
    assert made.durable() == {}


def test_what_stays_in_the_driver_is_not_stored_but_waits_for_the_checkpoint():
    sink = Recording(driver_only=True)
    made = sinks(sink)
    made.stage([report(0, object())])
    assert made.durable() == {}
    assert sink.done == []
    shown = Recording(driver_only=True)
    sinks(shown, with_epoch=True).stage([report(0, "a")])
    assert shown.done == [(-1, ["a"])]


def test_output_of_a_sink_that_the_program_does_not_have_is_refused(caplog):
    sink = Recording()
    with pytest.raises(OutputNotClaimed, match=r"checkpoint 3 has staged output .*: 2 of sink gone"):
        sinks(sink).recommit(3, {"out": ("a",), "gone": ("x", "y")})
    assert sink.done == []
    sinks(sink, allow_unclaimed=True).recommit(3, {"out": ("a",), "gone": ("x", "y")})
    assert sink.done == [(3, ["a"])]
    assert "output is dropped: checkpoint 3 has staged output" in caplog.text


def test_a_sink_that_fails_takes_no_rows_from_others():
    class Failing(Recording):
        failures = 1

        def commit(self, checkpoint, committables):
            if self.failures:
                self.failures -= 1
                raise OSError("no")
            super().commit(checkpoint, committables)

    first, second = Failing(), Recording(driver_only=True)
    third, fourth = Failing(driver_only=True), Recording()
    made = sinks(first, second, third, fourth)
    made.stage([{"subtask": 0, "results": {"out": ["a"], "out1": ["b"], "out2": ["c"], "out3": ["d"]}}])
    named = made.durable()
    with pytest.raises(OSError, match="no"):
        made.commit(7)
    made.abort(named)
    assert (second.done, fourth.done) == ([(7, ["b"])], [(7, ["d"])])
    made.recommit(7, named)
    assert (first.done, second.done, third.done) == ([(7, ["a"])], [(7, ["b"])], [(7, ["c"])])
    made.recommit(7, {})
    assert third.done == [(7, ["c"])]
