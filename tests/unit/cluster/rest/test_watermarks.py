"""Which input holds back the event time of a vertex."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from millstream.cluster.rest.watermarks import find_holder
from millstream.cluster.split_progress import SplitProgress
from millstream.event_time.watermarks import MAX_WATERMARK, MIN_WATERMARK


def plan(**upstream: str) -> Any:
    """A plan by the inputs of each vertex, such as join="left right"."""
    edges = [
        SimpleNamespace(upstream=source, downstream=vertex)
        for vertex, sources in upstream.items()
        for source in sources.split()
    ]

    def vertex(name: str) -> Any:
        return SimpleNamespace(nodes=[SimpleNamespace(operator=f"{name}-operator", name=f"Source: {name}")])

    return SimpleNamespace(job=SimpleNamespace(edges=edges, vertex=vertex))


SPLITS = {
    "left-operator": (SplitProgress("l0", 0, 500, 9), SplitProgress("l1", 1, 400, 8)),
    "right-operator": (
        SplitProgress("r0", 0, 300, 7),
        SplitProgress("r1", 1, 100, 6),
        SplitProgress("r2", 1, None, 1),
    ),
}
JOIN = plan(join="left right", sink="join")


def test_the_slowest_split_of_the_slowest_source() -> None:
    reached = {"left": 400, "right": 100, "join": 100, "sink": 100}
    slowest = {"split": "r1", "subtask": 1, "watermark": 100, "activeAt": 6}
    expected = {"vertex": "right", "name": "Source: right", "split": slowest}
    assert find_holder(JOIN, reached, SPLITS, "sink") == expected
    assert find_holder(JOIN, reached, SPLITS, "right") == expected
    left = find_holder(JOIN, reached, SPLITS, "left")
    assert left is not None
    assert left["split"] is not None
    assert left["split"]["split"] == "l1"


def test_a_source_without_splits_is_named() -> None:
    reached = {"left": 400, "right": 100, "join": 100}
    assert find_holder(JOIN, reached, {}, "join") == {"vertex": "right", "name": "Source: right", "split": None}


def test_nothing_holds_back_before_the_first_and_after_the_last_watermark() -> None:
    for watermark in (MIN_WATERMARK, MAX_WATERMARK):
        assert find_holder(JOIN, {"left": watermark, "right": watermark, "join": watermark}, SPLITS, "join") is None
    assert find_holder(JOIN, {}, SPLITS, "join") is None
