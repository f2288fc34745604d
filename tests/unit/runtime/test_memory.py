"""The memory of operators is restored with equal values, refused from newer releases, and read from release 0.1."""

import json
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pytest

from millstream.checkpoint.metadata import CheckpointMetadata, OperatorSnapshot, UnreadableMetadata
from millstream.event_time.watermarks import MAX_WATERMARK, MIN_WATERMARK
from millstream.runtime.memory import MemoryPart, OperatorMemory, SubtaskMemory, UnreadableMemory, redistribute
from millstream.runtime.operators.columnar_window import OpenWindows
from millstream.runtime.operators.sink import SinkMemory
from millstream.runtime.operators.source import SourceMemory, SplitMemory
from millstream.runtime.operators.timestamps import TimestampsMemory
from millstream.runtime.watermarks import GeneratorMemory, InputChannels
from millstream.state.handles import Lineage


@dataclass
class Seen(MemoryPart):
    """A value with a type of the test."""

    part_name: ClassVar[str] = "test_seen"
    version: ClassVar[int] = 2
    unversioned_keys: ClassVar[dict[str, str]] = {"old_names": "names"}

    names: list[str] = field(default_factory=list)


def through_json(memory):
    return SubtaskMemory.from_json(json.loads(json.dumps(memory.to_json())))


SOURCE = SourceMemory({"s0": SplitMemory(5, None, GeneratorMemory(7, 6, "ab")), "s1": SplitMemory(6)}, idle_sent=True)
PARTS = [
    SOURCE,
    OpenWindows([0, 10]),
    SinkMemory(idle=True),
    InputChannels({"0/0": None, "0/1": 4}),
    TimestampsMemory(3, generator=GeneratorMemory(1, 2)),
]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.part_name)
def test_a_part_survives_a_round_trip_and_shares_nothing(part):
    memory = SubtaskMemory(watermark=4, emitted_watermark=None, ended=True, restored=True, has_union_state=True)
    memory = through_json(memory.with_parts([part]))
    assert memory.part(type(part)) == part
    assert memory.part(type(part)) is not memory.part(type(part))
    assert through_json(memory) == memory


def test_defaults_are_not_stored():
    assert SubtaskMemory().with_parts([Seen(), SinkMemory()]).to_json() == {"version": 1}


def test_changes_of_an_operator_are_in_the_snapshot_only():
    before = SubtaskMemory().with_parts([Seen(["a"]), SinkMemory(idle=True)])
    memory = OperatorMemory(before)
    memory.watermark = 3
    memory.part(Seen).names.append("b")
    after = memory.snapshot()
    assert (after.watermark, after.part(Seen).names, after.part(SinkMemory).idle) == (3, ["a", "b"], True)
    assert before.part(Seen).names == ["a"]


OF_RELEASE_0_1 = {
    "watermark": 10,
    "said": None,
    "union": True,
    "splits": {"s": {"generator": {"greatest": 12, "watermark": MIN_WATERMARK}, "active_at": 5}},
    "idle_sent": True,
    "old_names": ["a"],
}


def test_memory_of_release_0_1_is_read_by_its_keys():
    memory = through_json(SubtaskMemory.from_json(OF_RELEASE_0_1))  # tools copy it as it is
    assert (memory.watermark, memory.emitted_watermark, memory.has_union_state) == (10, None, True)
    splits = {"s": SplitMemory(5, MIN_WATERMARK, GeneratorMemory(12))}
    assert memory.part(SourceMemory) == SourceMemory(splits, idle_sent=True)
    assert memory.part(Seen).names == ["a"]
    assert memory.part(OpenWindows) == OpenWindows()


def test_an_emptied_part_of_release_0_1_is_not_restored():
    running = OperatorMemory(SubtaskMemory.from_json(OF_RELEASE_0_1))
    running.part(Seen).names.clear()
    memory = running.snapshot()
    assert memory.part(Seen) == Seen()
    assert "s" in memory.part(SourceMemory).splits  # this one was not requested


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"version": 2}, "the memory of an operator has version 2, this release reads up to 1"),
        ({"version": "1"}, "has version '1'"),
        ({"version": 1, "colour": 3}, "not what this release writes.*colour"),
        ({"version": 1, "watermark": "3"}, "not what this release writes.*watermark='3'"),
        (
            {"version": 1, "parts": {"test_seen": {"version": 3}}},
            "'test_seen'.*version 3, this release reads up to 2",
        ),
        ({"version": 1, "parts": {"test_seen": {"version": 1, "places": 3}}}, "part 'test_seen'.*places"),
        ({"version": 1, "parts": {"test_seen": {}}}, "part 'test_seen'.*version"),
        ([], "not what this release writes"),
        ({"splits": 3}, "part 'source'"),
    ],
)
def test_memory_that_is_too_new_or_damaged_is_refused_before_the_job_starts(data, problem):
    snapshot = OperatorSnapshot("o", "name", None, 1, 128, (Lineage(),), (SubtaskMemory(),))
    metadata = json.loads(CheckpointMetadata(1, 2, 3, "job", "name", 4, 5, (snapshot,)).to_bytes())
    metadata["operators"][0]["subtasks"][0]["memory"] = data
    with pytest.raises(UnreadableMetadata, match=problem):
        CheckpointMetadata.from_bytes(json.dumps(metadata).encode())


def test_an_unknown_version_of_a_part_is_refused_where_it_is_read():
    memory = SubtaskMemory(parts={"test_seen": {"version": 3}})
    with pytest.raises(UnreadableMemory, match="has version 3"):
        memory.part(Seen)


def test_rescaling_distributes_splits_and_keeps_the_slowest_generator():
    first = SubtaskMemory(watermark=5, emitted_watermark=5).with_parts(
        [
            SourceMemory({"a": SplitMemory(1), "b": SplitMemory(2)}, idle_sent=True),
            TimestampsMemory(7, idle_sent=True, generator=GeneratorMemory(40)),
            OpenWindows([10]),
            Seen(["x"]),
        ]
    )
    second = SubtaskMemory(watermark=3, emitted_watermark=None).with_parts(
        [
            SourceMemory({"c": SplitMemory(3)}),
            TimestampsMemory(9, generator=GeneratorMemory(30)),
            OpenWindows([0, 10]),
        ]
    )
    memories = redistribute([first, second], 3)
    assert [list(memory.part(SourceMemory).splits) for memory in memories] == [["a"], ["b"], ["c"]]
    for memory in memories:
        assert (memory.watermark, memory.emitted_watermark, memory.ended) == (3, 5, False)
        assert memory.part(TimestampsMemory) == TimestampsMemory(9, generator=GeneratorMemory(30))
        assert memory.part(OpenWindows) == OpenWindows([0, 10])
        assert memory.part(Seen) == Seen()  # it does not say how it is redistributed


def test_event_time_of_a_drained_job_begins_again():
    drained = SubtaskMemory(watermark=MAX_WATERMARK, emitted_watermark=MAX_WATERMARK, ended=True)
    drained = drained.with_parts([SOURCE, InputChannels({"0/0": MAX_WATERMARK}), Seen(["x"])])
    memory = drained.without_event_time()
    assert (memory.watermark, memory.emitted_watermark, memory.ended) == (None, MIN_WATERMARK, False)
    assert memory.part(InputChannels) == InputChannels()
    assert memory.part(SourceMemory) == replace(SOURCE, idle_sent=False)
    assert memory.part(Seen) == Seen(["x"])
