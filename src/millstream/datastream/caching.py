"""A stream whose records are kept: the first job that computes it fills the cache, later jobs read it.

Promises: a cache is read only when the job that filled it has finished; until then, and after it was invalidated, the
stream is computed again, so a cache never changes results.
Does not know: files; the connector does."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from millstream import options
from millstream.client.job_client import JobClient
from millstream.config.configuration import Configuration
from millstream.connector.source import Boundedness
from millstream.connectors.stream_cache import CacheSink, CacheSource
from millstream.datastream.program import Program
from millstream.errors import UserError
from millstream.event_time.watermarks import WatermarkStrategy
from millstream.files.locations import is_uri
from millstream.graph.transformations import Input, Transformation
from millstream.job.job_status import JobStatus
from millstream.runtime.operators.sink import SinkSpec
from millstream.runtime.operators.source import SourceSpec
from millstream.types.factory import TypeInformation

_PATIENCE = 1.0  # seconds for a job whose results were just read to its end to be over


class UnboundedCache(UserError):
    """A stream that never ends cannot be cached."""

    def __init__(self, source: str) -> None:
        super().__init__(f"a stream of '{source}' cannot be cached, because it never ends", hint="bound the source")


class Caches:
    """The caches of one environment, and the directory they are kept in, which goes with the environment."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._root: str | None = None
        self.all: list[Cache] = []

    def directory(self) -> str:
        """A new directory: below the checkpoints, which all workers see, else among temporary files."""
        if self._root is None:
            where = self._configuration.get(options.CHECKPOINT_DIR)
            where = self._configuration.get(options.TMP_DIRS) if where is None or is_uri(where) else where
            parent = None if where is None else where.removeprefix("file://").split(",")[0]
            if parent is not None:
                Path(parent).mkdir(parents=True, exist_ok=True)
            self._root = tempfile.mkdtemp(prefix="millstream-cache-", dir=parent)
            weakref.finalize(self, shutil.rmtree, self._root, ignore_errors=True)
        return tempfile.mkdtemp(dir=self._root)

    def submitted(self, program: Program, client: JobClient) -> None:
        """A job was started: it fills the caches that its program had a sink for."""
        for cache in self.all:
            cache.submitted(program, client)

    def invalidate(self) -> None:
        """Forget all of them."""
        for cache in self.all:
            cache.invalidate()


class Cache:
    """The records of one stream."""

    def __init__(self, caches: Caches, program: Program, inputs: tuple[Input, ...], kind: TypeInformation) -> None:
        self._caches, self._program, self.kind = caches, program, kind
        self._inputs = inputs
        self._lineage = _lineage(program, inputs)
        for each in self._lineage:
            if each.source is not None and each.source.boundedness() is not Boundedness.BOUNDED:
                raise UnboundedCache(each.name)
        self._reading: int | None = None
        self._filling: int | None = None
        self._directory: str | None = None
        self._job: JobClient | None = None
        caches.all.append(self)

    def inputs(self) -> tuple[Input, ...]:
        """What a step that reads the stream reads, in the program as it is now."""
        known = self._program.transformations
        if self._complete():
            if self._reading not in known:
                assert self._directory is not None
                source = CacheSource(self._directory, self.kind)
                spec = SourceSpec(source, WatermarkStrategy.no_watermarks())
                self._reading = self._program.add("Source: Cache", spec, self.kind, source=source)
            return (Input(self._reading),)
        for each in self._lineage:
            known.setdefault(each.id, each)
        if self._filling not in known:
            self.invalidate()
            self._directory = self._caches.directory()
            sink = CacheSink(self._directory)
            self._filling = self._program.add("Sink: Cache", SinkSpec(sink), self.kind, self._inputs, sink=sink)
        return self._inputs

    def _complete(self) -> bool:
        if self._job is None:
            return False
        self._job.wait(_PATIENCE)
        return self._job.get_job_status().result() is JobStatus.FINISHED

    def submitted(self, program: Program, client: JobClient) -> None:
        """The program is about to run, under this client."""
        if self._filling in program.transformations:
            self._lineage = [program.transformations.get(each.id, each) for each in self._lineage]
            self._job = client

    def invalidate(self) -> None:
        """Delete the records; the stream is computed again when it is used again."""
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
        self._directory = self._job = self._filling = self._reading = None


def _lineage(program: Program, inputs: Sequence[Input]) -> list[Transformation]:
    """The steps a stream is made of, in the order they were made."""
    wanted: dict[int, Any] = {}
    waiting = [given.upstream for given in inputs]
    while waiting:
        number = waiting.pop()
        if number not in wanted:
            wanted[number] = program.transformations[number]
            waiting.extend(given.upstream for given in wanted[number].inputs)
    return [wanted[number] for number in sorted(wanted)]
