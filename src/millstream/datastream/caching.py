"""Caches of streams: the first job that computes a cached stream fills its cache, later jobs read it.

Promises: a cache is read only when the job that filled it has finished. Before that, and after it was invalidated, the
stream is computed again, so a cache never changes results.
Does not know: how records are stored; `millstream.connectors.stream_cache` does."""

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

_FINISH_SECONDS = 1.0  # a job whose last result was read may need a moment to finish


class UnboundedCache(UserError):
    """An unbounded stream cannot be cached."""

    def __init__(self, source: str) -> None:
        super().__init__(
            f"a stream of '{source}' cannot be cached, because it is unbounded", hint="use a bounded source"
        )


class Caches:
    """The caches of one environment and their directory, which is deleted with the environment."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._root: str | None = None
        self.all: list[Cache] = []

    def directory(self) -> str:
        """Create a directory: under the checkpoint directory, which all workers share, or else a temporary one."""
        if self._root is None:
            base = self._configuration.get(options.CHECKPOINT_DIR)
            base = self._configuration.get(options.TMP_DIRS) if base is None or is_uri(base) else base
            parent = None if base is None else base.removeprefix("file://").split(",")[0]
            if parent is not None:
                Path(parent).mkdir(parents=True, exist_ok=True)
            self._root = tempfile.mkdtemp(prefix="millstream-cache-", dir=parent)
            weakref.finalize(self, shutil.rmtree, self._root, ignore_errors=True)
        return tempfile.mkdtemp(dir=self._root)

    def note_submission(self, program: Program, client: JobClient) -> None:
        """Note a submitted job: it fills the caches for which its program has a sink."""
        for cache in self.all:
            cache.note_submission(program, client)

    def invalidate(self) -> None:
        """Invalidate all caches."""
        for cache in self.all:
            cache.invalidate()


class Cache:
    """The cache of one stream."""

    def __init__(
        self, caches: Caches, program: Program, inputs: tuple[Input, ...], output_type: TypeInformation
    ) -> None:
        self._caches, self._program, self.output_type = caches, program, output_type
        self._inputs = inputs
        self._lineage = _lineage(program, inputs)
        for transformation in self._lineage:
            if transformation.source is not None and transformation.source.boundedness() is not Boundedness.BOUNDED:
                raise UnboundedCache(transformation.name)
        self._reading: int | None = None
        self._filling: int | None = None
        self._directory: str | None = None
        self._job: JobClient | None = None
        caches.all.append(self)

    def inputs(self) -> tuple[Input, ...]:
        """Return the inputs of an operator that reads the stream: the cache if it is complete, else the stream
        itself."""
        transformations = self._program.transformations
        if self._is_complete():
            if self._reading not in transformations:
                assert self._directory is not None
                source = CacheSource(self._directory, self.output_type)
                spec = SourceSpec(source, WatermarkStrategy.no_watermarks())
                self._reading = self._program.add("Source: Cache", spec, self.output_type, source=source)
            return (Input(self._reading),)
        for transformation in self._lineage:
            transformations.setdefault(transformation.id, transformation)
        if self._filling not in transformations:
            self.invalidate()
            self._directory = self._caches.directory()
            sink = CacheSink(self._directory)
            self._filling = self._program.add("Sink: Cache", SinkSpec(sink), self.output_type, self._inputs, sink=sink)
        return self._inputs

    def _is_complete(self) -> bool:
        if self._job is None:
            return False
        self._job.wait(_FINISH_SECONDS)
        return self._job.get_job_status().result() is JobStatus.FINISHED

    def note_submission(self, program: Program, client: JobClient) -> None:
        """Note that a job runs the program; it fills this cache if it has the cache's sink."""
        if self._filling in program.transformations:
            self._lineage = [
                program.transformations.get(transformation.id, transformation) for transformation in self._lineage
            ]
            self._job = client

    def invalidate(self) -> None:
        """Delete the records; the stream is computed again when it is used next."""
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
        self._directory = self._job = self._filling = self._reading = None


def _lineage(program: Program, inputs: Sequence[Input]) -> list[Transformation]:
    """Return the transformations that a stream depends on, in the order of their ids."""
    lineage: dict[int, Any] = {}
    pending = [input_edge.upstream for input_edge in inputs]
    while pending:
        number = pending.pop()
        if number not in lineage:
            lineage[number] = program.transformations[number]
            pending.extend(input_edge.upstream for input_edge in lineage[number].inputs)
    return [lineage[number] for number in sorted(lineage)]
