"""Snapshots of a job that observers read."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from millstream.checkpoint.metadata import CheckpointMetadata
from millstream.checkpoint.storage import CheckpointStorage
from millstream.cluster.open_snapshots import NoSuchSnapshot, OpenSnapshots


class Checkpoints:
    """Published checkpoints without state, and the number of those that are pinned."""

    def __init__(self, directory: Path) -> None:
        self.storage = CheckpointStorage(str(directory), "job")
        self.pinned = 0

    def publish(self, number: int) -> None:
        metadata = dataclasses.replace(CheckpointMetadata.empty("job", "name", 0, "x"), checkpoint=number)
        self.storage.publish(number, metadata.to_bytes())

    def numbers(self) -> list[int]:
        return self.storage.list_checkpoints()

    def path_of(self, number: int) -> str:
        return os.path.join(self.storage.root, "job", f"chk-{number}")

    def pin(self, handles: object) -> object:
        self.pinned += 1

        def release() -> None:
            self.pinned -= 1

        return release


def test_an_opened_checkpoint_is_kept_while_it_is_used_and_then_released(tmp_path: Path) -> None:
    checkpoints, now = Checkpoints(tmp_path), [0.0]
    snapshots = OpenSnapshots(checkpoints, None, SimpleNamespace(precise=lambda: now[0]))  # type: ignore[arg-type]
    with pytest.raises(NoSuchSnapshot):
        snapshots.open("latest")
    for number in (1, 2):
        checkpoints.publish(number)
    assert snapshots.open("latest")[0].name == "chk-2"
    checkpoints.storage.delete_checkpoint(2)
    assert snapshots.open("chk-2")[1].metadata.checkpoint == 2
    assert checkpoints.pinned == 1
    now[0] = 50.0
    snapshots.open("chk-2")
    now[0] = 100.0
    snapshots.expire()
    assert checkpoints.pinned == 1, "it was used 50 seconds ago"
    now[0] = 111.0
    snapshots.expire()
    assert checkpoints.pinned == 0
    with pytest.raises(NoSuchSnapshot, match="chk-2"):
        snapshots.open("chk-2")


def test_the_number_of_checkpoints_that_are_kept_is_bounded(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    snapshots = OpenSnapshots(checkpoints, None, SimpleNamespace(precise=lambda: 0.0))  # type: ignore[arg-type]
    for number in range(1, 9):
        checkpoints.publish(number)
        snapshots.open(f"chk-{number}")
    snapshots.expire()
    assert checkpoints.pinned == 4
