"""A cached stream: its records in files, for later jobs of the same program.

Promises: records that a finished job wrote are read unchanged: values, timestamps, and the order of each subtask.
Does not know: when a cache is complete, which the caller knows from the job that fills it."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from millstream.connector.sink import Committer, Sink, SinkWriter, WriterContext
from millstream.connector.source import (
    Budget,
    ReaderContext,
    Records,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitRange,
)
from millstream.errors import ExternalError
from millstream.serialization import codec
from millstream.types.factory import TypeInformation

_LENGTH = struct.Struct("<Q")
_MANIFEST = "manifest.json"

Files = dict[str, list[tuple[int, str, int]]]
"""By subtask: epoch, name and number of records of each file."""


class CacheGone(ExternalError):
    """The files of a cache are not where they were written."""

    def __init__(self, directory: str, problem: OSError) -> None:
        self.directory = directory
        super().__init__(
            f"the cached records in {directory} cannot be read: {(problem.strerror or str(problem)).lower()}",
            hint="on a cluster set execution.checkpointing.dir to a directory that all machines share",
        )


@dataclass(frozen=True)
class CacheSink(Sink):
    """Writes a stream into a directory."""

    directory: str

    def create_writer(self, context: WriterContext) -> SinkWriter:
        """Create a writer of one file for each subtask and epoch."""
        return _CacheWriter(Path(self.directory), context)

    def create_committer(self) -> Committer:
        """Create a committer that lists the committed files in a manifest."""
        return _CacheCommitter(Path(self.directory))


class _CacheWriter(SinkWriter):
    def __init__(self, directory: Path, context: WriterContext) -> None:
        self._context = context
        self._path = directory / f"{context.subtask}-{context.epoch}-{context.attempt}"
        self._file = self._path.open("wb")
        self._records = 0

    def write(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        data = codec.encode((list(values), None if timestamps is None else list(timestamps)))
        self._file.write(_LENGTH.pack(len(data)) + data)
        self._records += len(values)

    def prepare_commit(self) -> list[Any]:
        self._file.close()
        return [[self._context.subtask, self._context.epoch, self._path.name, self._records]]

    def abort(self) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)

    def close(self) -> None:
        self._file.close()


class _CacheCommitter(Committer):
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        files = _read_manifest(self._directory)
        for subtask, epoch, name, records in committables:
            listed = files.setdefault(str(subtask), [])
            if all(listed_name != name for _, listed_name, _ in listed):
                listed.append((epoch, name, records))
        temporary = self._directory / f"{_MANIFEST}.new"
        temporary.write_text(json.dumps(files), encoding="utf-8")
        os.replace(temporary, self._directory / _MANIFEST)

    def abort(self, committables: Sequence[Any]) -> None:
        for _, _, name, _ in committables:
            (self._directory / name).unlink(missing_ok=True)


def _read_manifest(directory: Path) -> Files:
    path = directory / _MANIFEST
    if not path.exists():
        return {}
    manifest = json.loads(path.read_text(encoding="utf-8"))
    return {
        subtask: sorted((int(epoch), str(name), int(records)) for epoch, name, records in files)
        for subtask, files in manifest.items()
    }


@dataclass(frozen=True)
class CacheSource(Source):
    """Reads what a `CacheSink` wrote; a split is the output of one subtask."""

    directory: str
    record_type: TypeInformation

    def type_info(self) -> TypeInformation:
        """Return the type of the stream."""
        return self.record_type

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """Create an enumerator whose offsets are numbers of files."""
        return _CacheEnumerator(_read_manifest(Path(self.directory)), state or {})

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Create a reader of cached files."""
        return _CacheReader(Path(self.directory))


class _CacheEnumerator(SplitEnumerator):
    def __init__(self, files: Files, state: dict[str, int]) -> None:
        self._files = files
        self._next_file = {split: int(state.get(split, 0)) for split in files}

    def plan(self, budget: Budget) -> list[SplitRange]:
        planned = []
        share = max(budget.records // max(len(self.splits()), 1), 1)
        for split in self.splits():
            start, files = self._next_file[split], self._files[split]
            end = start + 1
            while end < len(files) and sum(n for _, _, n in files[start : end + 1]) <= share:
                end += 1
            self._next_file[split] = end
            names = [name for _, name, _ in files[start:end]]
            planned.append(SplitRange(split, names, end, sum(n for _, _, n in files[start:end])))
        return planned

    def snapshot(self) -> dict[str, int]:
        return dict(self._next_file)

    def finished(self) -> bool:
        return not self.splits()

    def splits(self) -> list[str]:
        return [split for split, files in self._files.items() if self._next_file[split] < len(files)]

    def skip(self, done: SplitRange) -> None:
        self._next_file[done.split] = done.end

    def lag(self) -> int:
        return sum(n for split, files in self._files.items() for _, _, n in files[self._next_file[split] :])


class _CacheReader(SourceReader):
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self, part: SplitRange) -> Iterator[Records]:
        for name in part.start:
            try:
                with (self._directory / name).open("rb") as file:
                    while head := file.read(_LENGTH.size):
                        values, timestamps = codec.decode(file.read(_LENGTH.unpack(head)[0]))
                        yield Records(values, timestamps)
            except OSError as problem:
                raise CacheGone(str(self._directory), problem) from problem
