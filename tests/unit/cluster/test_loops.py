"""The next step of an iteration, derived from the reports of its operators."""

import pytest

from millstream.cluster.loops import IterationTooLong, plan_loop
from millstream.runtime.loops import LoopConfig, LoopProgress, LoopReport, Until, merge_aggregates

BOUNDED = LoopConfig("loop", max_rounds=5)
UNBOUNDED = LoopConfig("loop", bounded=False)
RUNNING = LoopProgress("running", 3, True, 1_000)


def step(config, progress, feedback=0, *, inputs_ended=True, now=1_000, **report):
    plan = plan_loop(config, progress, [LoopReport(feedback, **report)], inputs_ended=inputs_ended, now=now)
    return plan["phase"], plan["round"], plan["ends_round"], plan["work"], plan["end"]


def test_the_first_round_lasts_until_the_input_ends():
    assert step(BOUNDED, LoopProgress(), 7, inputs_ended=False) == ("read", 0, False, False, False)
    assert step(BOUNDED, LoopProgress(), 7) == ("read", 0, True, True, False)


def test_each_later_epoch_is_a_round():
    assert step(BOUNDED, RUNNING, 1) == ("round", 3, True, True, False)


@pytest.mark.parametrize(
    ("config", "feedback", "report"),
    [
        (BOUNDED, 0, {}),
        (LoopConfig("loop", max_rounds=3), 1, {}),
        (LoopConfig("loop", has_criteria=True), 1, {"criteria": 0}),
        (LoopConfig("loop", until=Until("change", 0.5)), 1, {"aggregates": {"change": ["sum", 0.5]}}),
    ],
)
def test_a_bounded_iteration_ends_in_one_epoch(config, feedback, report):
    assert step(config, RUNNING, feedback, **report) == ("close", 3, False, True, True)


def test_without_values_a_criterion_does_not_end_an_iteration():
    assert step(LoopConfig("loop", until=Until("change", 0.5)), RUNNING, 1)[0] == "round"


def test_an_unbounded_iteration_waits_for_input_and_for_feedback():
    assert step(UNBOUNDED, LoopProgress(round=4), inputs_ended=False) == ("round", 4, False, False, False)
    assert step(UNBOUNDED, LoopProgress(round=4), 2, inputs_ended=False) == ("round", 4, False, True, False)


def test_an_unbounded_iteration_ends_when_no_feedback_is_left():
    ended = LoopProgress(round=9, inputs_ended=True)
    assert step(UNBOUNDED, LoopProgress(round=8)) == ("round", 8, False, True, False)  # the last input is in this epoch
    assert step(UNBOUNDED, ended, 1) == ("round", 9, False, True, False)
    assert step(UNBOUNDED, ended) == ("close", 9, False, True, False)
    closed = LoopProgress("closed", 10, True)
    assert step(UNBOUNDED, closed, 1) == ("round", 10, False, True, False)  # the last watermark caused feedback
    assert step(UNBOUNDED, closed) == ("ended", 10, False, True, True)
    assert step(UNBOUNDED, LoopProgress("ended", 10, True)) == ("ended", 10, False, False, True)


def test_a_deadline_counts_from_the_end_of_the_input():
    config = LoopConfig("loop", deadline=100)
    assert step(config, RUNNING, 1, now=1_100)[0] == "round"
    with pytest.raises(
        IterationTooLong, match=r"'loop' has not terminated 100 ms .* in round 3; .* 1 feedback records"
    ):
        step(config, RUNNING, 1, now=1_101)


def test_aggregates_are_merged_by_their_type():
    reports = [
        LoopReport(aggregates={"total": ["sum", 0.1], "least": ["min", 3]}),
        LoopReport(aggregates={"total": ["sum", 0.2], "least": ["min", 2]}),
    ]
    assert merge_aggregates(reports) == {"least": 2, "total": pytest.approx(0.3)}
    assert merge_aggregates(LoopReport.redistribute(reports, 3)) == merge_aggregates(reports)
