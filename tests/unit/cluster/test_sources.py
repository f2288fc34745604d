"""Assignment of splits to subtasks and ranges to epochs: plans are JSON, splits stay on their subtask, ended splits do
not hold back others."""

import json
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from millstream.cluster.sources import EpochPlan, Sources, _owners
from millstream.connector.source import Budget
from millstream.runtime.memory import SubtaskMemory
from millstream.runtime.operators.source import SourceMemory, SourceSpec, SplitMemory
from millstream.times import Duration
from millstream_chaos.samples.programs import strategy
from millstream_chaos.samples.sample_input import events
from millstream_chaos.samples.splits_source import SplitsSource

COUNTS = (5, 2, 9, 4)


def sources(parallelism=2, positions=None, watermarks=None):
    spec = SourceSpec(SplitsSource(tuple(events(count) for count in COUNTS)), watermarks or strategy())
    node = SimpleNamespace(id="src", name="Source: src", spec=spec)
    task = SimpleNamespace(operators=(node,), parallelism=parallelism)
    return Sources(SimpleNamespace(vertices=(SimpleNamespace(task=task),)), positions or {})


def plans(made, budget=4):
    found = []
    while not found or not found[-1].ends:
        found.append(made.plan(len(found) + 1, Budget(budget, 1 << 20, 100 * len(found)), {}))
    return found


def test_every_record_is_planned_once_and_the_last_plan_ends():
    read = [tuple(part[:3]) for plan in plans(sources()) for part in plan.sources["src"]["ranges"]]
    covered = sorted((split, at) for split, start, end in read for at in range(start, end))
    assert covered == [(f"s{index}", at) for index, count in enumerate(COUNTS) for at in range(count)]


def test_a_plan_survives_json():
    for plan in plans(sources()):
        assert EpochPlan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


@given(st.integers(0, 30), st.integers(1, 9))
def test_replaying_and_planning_have_the_same_positions(cut, budget):
    one, other = sources(), sources()
    for plan in plans(one, budget)[:cut]:
        other.replay(plan)
    again = sources()
    for _ in range(min(cut, len(plans(sources(), budget)))):
        again.plan(1, Budget(budget, 1 << 20, 0), {})
    assert other.snapshot() == again.snapshot()
    assert sources(positions=json.loads(json.dumps(other.snapshot()))).snapshot() == other.snapshot()


@given(st.integers(0, 3), st.integers(1, 9))
def test_a_plan_that_was_too_large_is_replaced_by_a_smaller_one(epochs, budget):
    made, whole = sources(), sources()
    before = [whole.plan(number + 1, Budget(2, 1 << 20, 0), {}) for number in range(epochs)]
    for plan in before:
        made.replay(plan)
    failed = whole.plan(epochs + 1, Budget(100, 1 << 20, 5), {})
    smaller = made.plan_again(failed, budget, 1 << 20, {})
    assert (smaller.epoch, smaller.now) == (failed.epoch, failed.now)
    assert smaller.records < failed.records
    assert not smaller.ends
    rest = plans(made)
    read = [part[:3] for plan in [*before, smaller, *rest] for part in plan.sources["src"]["ranges"]]
    covered = sorted((split, at) for split, start, end in read for at in range(start, end))
    assert covered == [(f"s{index}", at) for index, count in enumerate(COUNTS) for at in range(count)]


def test_a_plan_of_one_record_cannot_be_smaller():
    made, whole = sources(), sources()
    failed = whole.plan(1, Budget(1, 1 << 20, 0), {})
    assert made.plan_again(failed, 1, 1 << 20, {}) is failed
    assert made.snapshot() == whole.snapshot()


@given(st.integers(1, 5))
def test_a_split_stays_with_the_subtask_that_has_read_it(parallelism):
    made = sources(parallelism)
    memory = {"src": [SubtaskMemory() for _ in range(parallelism)]}
    readers = {}
    for plan in plans(sources(parallelism), 3):
        made.replay(plan)
        work = made.work(plan, memory)["src"]
        assert sorted(part[0] for each in work for part in each.ranges) == sorted(
            part[0] for part in plan.sources["src"]["ranges"]
        )
        for subtask, each in enumerate(work):
            for name in {*each.splits, *(part[0] for part in each.ranges)}:
                assert readers.setdefault(name, subtask) == subtask
            memory["src"][subtask] = _remembering({name: SplitMemory(0) for name in each.splits})


@given(st.sets(st.sampled_from([f"s{i}" for i in range(12)])), st.integers(1, 5))
def test_new_splits_are_assigned_evenly(names, parallelism):
    owners = _owners(sorted(names), [{} for _ in range(parallelism)])
    counts = [list(owners.values()).count(subtask) for subtask in range(parallelism)]
    assert max(counts) - min(counts) <= 1


def aligned():
    return strategy().with_watermark_alignment("group", Duration.of_millis(10))


def remembered_marks(**marks):
    return {"src": [_remembering({name: SplitMemory(0, mark) for name, mark in marks.items()}), SubtaskMemory()]}


def _remembering(splits):
    return SubtaskMemory().with_parts([SourceMemory(splits)])


def test_a_split_that_is_ahead_of_its_group_waits():
    plan = sources(watermarks=aligned()).plan(2, Budget(100, 1 << 20, 0), remembered_marks(s0=100, s2=111))
    assert "s2" not in [part[0] for part in plan.sources["src"]["ranges"]]
    assert "s0" in [part[0] for part in plan.sources["src"]["ranges"]]


def test_watermark_alignment_ignores_ended_splits():
    made = sources(watermarks=aligned(), positions={"src": [5, 0, 0, 0]})
    plan = made.plan(2, Budget(100, 1 << 20, 0), remembered_marks(s0=100, s1=500, s2=505, s3=505))
    assert len(plan.sources["src"]["ranges"]) == 3


def test_watermark_alignment_ignores_idle_splits():
    plan = sources(watermarks=aligned()).plan(2, Budget(100, 1 << 20, 0), remembered_marks(s0=None, s2=500))
    assert "s2" in [part[0] for part in plan.sources["src"]["ranges"]]
