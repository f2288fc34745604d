"""What is staged becomes visible with its checkpoint, in order, and is undone when it will be made again."""

from dataclasses import replace
from types import SimpleNamespace

from millstream.checkpoint.metadata import OperatorSnapshot
from millstream.cluster.sinks import Sinks
from millstream.model.sink import Committer, Sink
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


def sinks(sink, with_epoch=False):
    node = SimpleNamespace(id="out", spec=SinkSpec(sink))
    task = SimpleNamespace(operators=(node,))
    return Sinks(SimpleNamespace(vertices=(SimpleNamespace(task=task),)), with_epoch=with_epoch)


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
    sinks(sink).recommit(3, {"out": ("a",), "gone": ("x",)})
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
