"""A source of Arrow IPC files that were written for this job.

Promises: the rows of each file in their order, once, as columns. Files are read in parallel.
Does not know: who wrote the files; when they are deleted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from millstream.connector.source import ReaderContext, Records, Source, SourceReader, SplitEnumerator, SplitRange
from millstream.connectors.arrow.batches import ArrowEnumerator
from millstream.files.remote import get_file_system
from millstream.types.factory import TypeInformation


@dataclass(frozen=True)
class ArrowFilesSource(Source):
    """Emits the rows of Arrow IPC files, whose columns are the fields of `element_type`. A file is a path and its
    number of rows."""

    files: tuple[tuple[str, int], ...]
    element_type: TypeInformation

    def type_info(self) -> TypeInformation:
        """Return the declared type."""
        return self.element_type

    def max_parallelism(self) -> int | None:
        """Return the number of files, at least 1."""
        return max(len(self.files), 1)

    def create_enumerator(self, parallelism: int, state: Any = None) -> SplitEnumerator:
        """Create an enumerator of row offsets; its state is the next offset of each file."""
        positions = [0] * len(self.files) if state is None else list(state)
        return ArrowEnumerator(positions, [rows for _, rows in self.files])

    def create_reader(self, context: ReaderContext) -> SourceReader:
        """Create a reader of the files."""
        return ArrowFilesReader(self, context.block_records)


class ArrowFilesReader(SourceReader):
    """Reads ranges of rows of files."""

    def __init__(self, source: ArrowFilesSource, block: int) -> None:
        self._source, self._block = source, block

    def read(self, part: SplitRange) -> Iterator[Records]:
        """Yield the rows of the range; batches before it are skipped."""
        path, _ = self._source.files[int(part.split)]
        fields = list(self._source.element_type.arrow_type)
        with get_file_system(path).open(path) as stream, pa.ipc.open_file(stream) as reader:
            offset = 0
            for index in range(reader.num_record_batches):
                batch = reader.get_batch(index)
                start, end = max(part.start - offset, 0), min(part.end - offset, batch.num_rows)
                offset += batch.num_rows
                for first in range(start, end, self._block):
                    piece = batch.slice(first, min(self._block, end - first))
                    row_kinds = pa.nulls(piece.num_rows, fields[-1].type)
                    yield Records(pa.StructArray.from_arrays([*piece.columns, row_kinds], fields=fields))
                if offset >= part.end:
                    return
