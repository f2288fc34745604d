"""Restoring old state in a new program: which operator gets which state, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.checkpoint.metadata import CheckpointMetadata, OperatorSnapshot
from millstream.checkpoint.restore import MaxParallelismChanged, OperatorShape, StateNotClaimed, assign
from millstream.runtime.memory import SubtaskMemory
from millstream.runtime.operators.source import SourceMemory, SplitMemory
from millstream.state.handles import Handle, Lineage


def handle(name):
    return Handle(name, 1, "", 1)


def snapshot(operator="a", parallelism=2, memory=None, files=True, most=128):
    lineages = tuple(Lineage((handle(f"{operator}{i}"),) if files else ()) for i in range(parallelism))
    return OperatorSnapshot(
        operator, f"name {operator}", None, parallelism, most, lineages, memory or (SubtaskMemory(),) * parallelism
    )


def checkpoint(*operators):
    return CheckpointMetadata(1, 3, 0, "job", "name", 0, 0, operators)


def shape(operator="a", parallelism=2, most=128):
    return OperatorShape(operator, f"name {operator}", parallelism, most)


def test_the_same_parallelism_continues_with_its_own_files():
    found = assign(checkpoint(snapshot()), [shape()])
    assert found.lineages["a"] == (Lineage((handle("a0"),)), Lineage((handle("a1"),)))


@pytest.mark.parametrize("parallelism", [1, 3])
def test_another_parallelism_reads_the_lineages_of_all_subtasks(parallelism):
    found = assign(checkpoint(snapshot()), [shape(parallelism=parallelism)])
    assert len(found.lineages["a"]) == parallelism
    for lineage in found.lineages["a"]:
        assert lineage.own == ()
        assert lineage.restored == ((0, (handle("a0"),)), (1, (handle("a1"),)))


def test_the_state_of_another_job_is_written_again():
    found = assign(checkpoint(snapshot()), [shape()], foreign=True)
    assert all(lineage.own == () and lineage.restored for lineage in found.lineages["a"])


def test_a_new_operator_starts_empty():
    found = assign(checkpoint(snapshot()), [shape(), shape("b", 3)])
    assert found.lineages["b"] == (Lineage(),) * 3
    assert found.memory["b"] == (SubtaskMemory(),) * 3


def test_unclaimed_state_is_refused_unless_that_is_allowed():
    with pytest.raises(StateNotClaimed, match=r"state of 'name a', which the program does not have.*'name b'"):
        assign(checkpoint(snapshot()), [shape("b")])
    assert assign(checkpoint(snapshot()), [shape("b")], allow_unclaimed=True).lineages == {"b": (Lineage(),) * 2}


def test_an_operator_without_state_may_be_removed():
    assign(checkpoint(snapshot(files=False)), [shape("b")])


def test_a_changed_max_parallelism_is_refused_where_there_is_state():
    with pytest.raises(MaxParallelismChanged, match="max parallelism 128, the program asks for 64"):
        assign(checkpoint(snapshot()), [shape(most=64)])
    assign(checkpoint(snapshot(files=False)), [shape(most=64)])


@given(
    st.lists(st.sets(st.sampled_from([f"s{i}" for i in range(9)])), min_size=1, max_size=4),
    st.integers(1, 5),
)
def test_every_split_is_remembered_by_exactly_one_subtask(split_sets, parallelism):
    owned, taken = [], set()
    for names in split_sets:
        splits = {name: SplitMemory(0, watermark=1) for name in sorted(names - taken)}
        owned.append(SubtaskMemory().with_parts([SourceMemory(splits)]))
        taken |= names
    old = snapshot(parallelism=len(split_sets), memory=tuple(owned), files=False)
    found = assign(checkpoint(old), [shape(parallelism=parallelism)]).memory["a"]
    assert sorted(name for memory in found for name in memory.part(SourceMemory).splits) == sorted(taken)


@given(st.lists(st.none() | st.integers(0, 100), min_size=1, max_size=4), st.integers(1, 5))
def test_the_watermark_after_rescaling_is_the_least(marks, parallelism):
    memory = tuple(SubtaskMemory(watermark=mark) for mark in marks)
    old = snapshot(parallelism=len(marks), memory=memory, files=False)
    if parallelism == len(marks):
        return
    for each in assign(checkpoint(old), [shape(parallelism=parallelism)]).memory["a"]:
        assert each.watermark == (None if None in marks else min(marks))
