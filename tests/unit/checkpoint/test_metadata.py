"""Checkpoint metadata is plain JSON that is read as the same value; anything else is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.checkpoint.metadata import CheckpointMetadata, OperatorSnapshot, UnreadableMetadata
from millstream.errors import InternalError
from millstream.runtime.memory import SubtaskMemory
from millstream.state.handles import Handle, Lineage, Part
from millstream.state.key_groups import KeyGroupRange

texts = st.text(max_size=8)
counts = st.integers(0, 2**62)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
handles = st.builds(Handle, texts, counts, texts, counts, counts, st.booleans(), st.lists(texts, max_size=2).map(tuple))
lineages = st.lists(handles, max_size=3).map(lambda own: Lineage(tuple(own)))

memories = st.builds(
    SubtaskMemory,
    watermark=st.none() | st.integers(),
    emitted_watermark=st.none() | st.integers(),
    ended=st.booleans(),
    restored=st.booleans(),
    has_union_state=st.booleans(),
    parts=st.dictionaries(texts, st.dictionaries(texts, plain, max_size=2), max_size=2),
    unversioned=st.dictionaries(texts, plain, max_size=2),
)


@st.composite
def operators(draw):
    parallelism = draw(st.integers(1, 3))
    return OperatorSnapshot(
        draw(texts),
        draw(texts),
        draw(st.none() | texts),
        parallelism,
        128,
        tuple(draw(lineages) for _ in range(parallelism)),
        tuple(draw(memories) for _ in range(parallelism)),
    )


checkpoints = st.builds(
    CheckpointMetadata,
    checkpoint=counts,
    epoch=counts,
    generation=counts,
    job_id=texts,
    job_name=texts,
    timestamp=counts,
    now=counts,
    operators=st.lists(operators(), max_size=3).map(tuple),
    sources=st.dictionaries(texts, plain, max_size=2),
    committables=st.dictionaries(texts, st.lists(plain, max_size=2).map(tuple), max_size=2),
    bytes_new=counts,
    incarnation=st.sampled_from(["", "0a1b2c"]),
)


@given(checkpoints)
def test_metadata_survives_a_round_trip(metadata):
    assert CheckpointMetadata.from_bytes(metadata.to_bytes()) == metadata


def small():
    handle = Handle("job/shared/a", 3, "00", 1)
    operator = OperatorSnapshot("id", "Map", None, 1, 128, (Lineage((handle,)),), (SubtaskMemory(),))
    return CheckpointMetadata(1, 2, 0, "job", "name", 5, 5, (operator,))


def test_every_file_is_named_once():
    one = small()
    twice = CheckpointMetadata(1, 2, 0, "job", "name", 5, 5, one.operators * 2)
    assert [handle.name for handle in twice.handles] == ["job/shared/a"]
    assert twice.full_size == 3


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"[]", b"{}", b"3", b"null", b"\xff\xfe", b"[" * 100_000, b'{"format": "x"}']
)
def test_bytes_that_are_not_metadata_are_refused(data):
    with pytest.raises(UnreadableMetadata):
        CheckpointMetadata.from_bytes(data)


@given(st.sampled_from(sorted(json.loads(small().to_bytes()))), st.sampled_from([None, "x", [1], 1.5, True]))
def test_a_field_of_another_type_is_refused(field, value):
    read = json.loads(small().to_bytes())
    if isinstance(read[field], str):
        return
    read[field] = value
    with pytest.raises(UnreadableMetadata):
        CheckpointMetadata.from_bytes(json.dumps(read).encode())


def test_a_later_format_is_refused_with_a_hint():
    read = {**json.loads(small().to_bytes()), "format": 3}
    with pytest.raises(UnreadableMetadata, match="format 3, this release reads up to 2; hint"):
        CheckpointMetadata.from_bytes(json.dumps(read).encode())


def metadata_in_parts():
    part = Part(KeyGroupRange(4, 9), KeyGroupRange(0, 9), KeyGroupRange(0, 127))
    chain = (Handle("job/shared/p", 3, "00", 1, base=True, part=part), Handle("job/shared/d", 3, "00", 2, follows="c"))
    operator = OperatorSnapshot("id", "Map", None, 1, 128, (Lineage(chain),), (SubtaskMemory(),))
    return CheckpointMetadata(1, 2, 0, "job", "name", 5, 5, (operator,))


def test_parts_of_a_base_survive():
    assert CheckpointMetadata.from_bytes(metadata_in_parts().to_bytes()) == metadata_in_parts()


@pytest.mark.parametrize(
    "part",
    [
        {"groups": [9, 4], "written": [0, 9], "of": [0, 127]},
        {"groups": [0, 127], "written": [0, 9], "of": [0, 127]},
        {"groups": [0, 9], "written": [-1, 9], "of": [-1, 127]},
        {"groups": [0, 9], "written": [0, 9], "of": [0, 1 << 40]},
        {"groups": [0], "written": [0, 9], "of": [0, 127]},
        {"groups": [0, 9]},
        7,
    ],
)
def test_an_invalid_part_is_refused(part):
    read = json.loads(metadata_in_parts().to_bytes())
    read["operators"][0]["subtasks"][0]["files"][0]["part"] = part
    with pytest.raises(UnreadableMetadata):
        CheckpointMetadata.from_bytes(json.dumps(read).encode())


def test_restored_state_that_was_not_written_again_is_an_error():
    """It would be: metadata names a subtask's own files only."""
    chain = small().operators[0].lineages[0].own
    operator = OperatorSnapshot("id", "Map", None, 1, 128, (Lineage(restored=((0, chain),)),), (SubtaskMemory(),))
    with pytest.raises(InternalError, match="'Map' was restored but not yet written"):
        CheckpointMetadata(1, 2, 0, "job", "name", 5, 5, (operator,)).to_bytes()
