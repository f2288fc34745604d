"""A sink that notices output of one epoch from two attempts.

Promises: rows are staged for each attempt and made visible for each epoch by one atomic rename; a repeated commit
changes nothing. If an epoch becomes visible from another attempt than before, exactly-once is violated: this is an
error, unless `repeats` allows it for equal rows.
Does not know: checkpoints, engines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from millstream.connector.sink import Committer, Sink, SinkWriter, WriterContext
from millstream.errors import ExternalError, InternalError
from millstream.files.contract import FileSystem


class StagedFileLost(ExternalError):
    """A checkpoint names output that is neither staged nor visible."""


class EpochVisibleTwice(InternalError):
    """An epoch became visible from two attempts."""


@dataclass(frozen=True)
class VisibleOutput(Sink):
    """A sink of rows as text in `directory`.

    With `repeats`, an epoch may be committed again from another attempt if its rows are equal, as after the loss of a
    checkpoint whose output was committed."""

    files: FileSystem
    directory: str
    repeats: bool = False

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Create a writer that stages the rows of one epoch."""
        return _StagingWriter(self, context)

    def create_committer(self) -> Committer:
        """Create a committer that makes epochs visible."""
        return _EpochCommitter(self)


class _StagingWriter(SinkWriter):
    def __init__(self, sink: VisibleOutput, context: WriterContext) -> None:
        self._sink, self._context = sink, context
        self._rows: list[str] = []

    def write(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        self._rows.extend(map(repr, values))

    def prepare_commit(self) -> list[Any]:
        context, files = self._context, self._sink.files
        name = f"{context.sink[:8]}-{context.epoch:05d}-{context.subtask}-{context.attempt}"
        files.make_dirs(f"{self._sink.directory}/staged")
        files.write_bytes(f"{self._sink.directory}/staged/{name}", json.dumps(self._rows).encode(), True)
        files.sync_dir(f"{self._sink.directory}/staged")
        return [[f"{context.sink[:8]}-{context.epoch:05d}", name]]


class _EpochCommitter(Committer):
    def __init__(self, sink: VisibleOutput) -> None:
        self._sink, self._files = sink, sink.files

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        epochs: dict[str, list[str]] = {}
        for epoch, name in committables:
            epochs.setdefault(epoch, []).append(name)
        for epoch, names in epochs.items():
            self._commit_epoch(epoch, sorted(names))
        self.abort(committables)

    def abort(self, committables: Sequence[Any]) -> None:
        for _, name in committables:
            path = f"{self._sink.directory}/staged/{name}"
            if self._files.exists(path):
                self._files.remove(path)

    def _commit_epoch(self, epoch: str, names: list[str]) -> None:
        path = f"{self._sink.directory}/visible/{epoch}"
        before = json.loads(self._files.read_bytes(path)) if self._files.exists(path) else None
        if before is not None and before["staged"] == names:
            self._files.sync_dir(
                f"{self._sink.directory}/visible"
            )  # the earlier commit may have crashed before the sync
            return
        rows: list[str] = []
        for name in names:
            staged = f"{self._sink.directory}/staged/{name}"
            if not self._files.exists(staged):
                msg = f"the staged file {staged} is missing and epoch {epoch} is not visible"
                raise StagedFileLost(msg)
            rows += json.loads(self._files.read_bytes(staged))
        if before is not None and not (self._sink.repeats and sorted(before["rows"]) == sorted(rows)):
            msg = f"epoch {epoch} is visible as {before}, and was committed again as {names} with {rows}"
            raise EpochVisibleTwice(msg)
        self._files.make_dirs(f"{self._sink.directory}/visible")
        self._files.write_bytes(f"{path}.tmp", json.dumps({"staged": names, "rows": rows}).encode(), True)
        self._files.replace(f"{path}.tmp", path)
        self._files.sync_dir(f"{self._sink.directory}/visible")  # before the staged files are removed


def read_visible_rows(files: FileSystem, directory: str) -> list[str]:
    """Return all visible rows, sorted, because the order between keys is not defined."""
    visible = f"{directory}/visible"
    if not files.exists(visible):
        return []
    names = [name for name in files.list(visible) if not name.endswith(".tmp")]
    return sorted(row for name in names for row in json.loads(files.read_bytes(f"{visible}/{name}"))["rows"])
