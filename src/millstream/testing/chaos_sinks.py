"""Real sinks for chaos cases that run in this process.

Promises: a sink is attached to any stream, writes to a directory alone, and its visible rows are read back as text; a
copy of the directory is the same output at another time.
Does not know: faults. A sink that is not in a directory can be added with a `copy` of its own."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from millstream.common import Row, Types
from millstream.common.serialization import Encoder
from millstream.connectors.files import FileSink
from millstream.connectors.files.buckets import BucketAssigner
from millstream.connectors.lakehouse.iceberg_catalog import TableLoader
from millstream.datastream.connectors.delta import DeltaSink
from millstream.datastream.connectors.iceberg import IcebergSink
from millstream.datastream.data_stream import DataStream
from millstream.model.arrow_types import python_values

_ROWS = Types.ROW_NAMED(["text"], [Types.STRING()])


class OutputSink(Protocol):
    """A sink and how its output is looked at."""

    def attach(self, stream: DataStream, directory: Path) -> None:
        """Write the stream, as text, to a directory."""

    def rows(self, directory: Path) -> list[str]:
        """The rows that anyone can see, sorted."""


class Files:
    """Lines in files, exactly once."""

    def attach(self, stream: DataStream, directory: Path) -> None:
        """Files in one bucket."""
        sink = (
            FileSink.for_row_format(str(directory), Encoder.simple_string_encoder())
            .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
            .build()
        )
        stream.map(repr, Types.STRING()).uid("as text").sink_to(sink).uid("to files")

    def rows(self, directory: Path) -> list[str]:
        """All lines."""
        return sorted(line for path in directory.glob("part-*") for line in path.read_text().splitlines())


class Delta:
    """A Delta table, one commit a checkpoint."""

    def attach(self, stream: DataStream, directory: Path) -> None:
        """A table in the directory."""
        sink = DeltaSink.for_row_data(str(directory / "table"), _ROWS).build()
        sink.check()
        stream.map(_as_row, _ROWS).uid("as row").sink_to(sink).uid("to delta")

    def rows(self, directory: Path) -> list[str]:
        """All rows of the newest version."""
        from deltalake import DeltaTable

        if not (directory / "table").exists():
            return []
        return _texts(DeltaTable(str(directory / "table")).to_pyarrow_table())


class Iceberg:
    """An Iceberg table with a catalog in SQLite, one snapshot a checkpoint."""

    def attach(self, stream: DataStream, directory: Path) -> None:
        """A table in the directory."""
        sink = IcebergSink.for_row(_loader(directory), _ROWS).create_table_if_missing().build()
        sink.check()
        stream.map(_as_row, _ROWS).uid("as row").sink_to(sink).uid("to iceberg")

    def rows(self, directory: Path) -> list[str]:
        """All rows of the newest snapshot."""
        with _loader(directory).opened() as (_, table):
            return _texts(table.scan().to_arrow())


def _loader(directory: Path) -> TableLoader:
    place = {"uri": f"sqlite:///{directory}/catalog.db", "warehouse": f"file://{directory}/warehouse"}
    return TableLoader.from_catalog("chaos", {"type": "sql", **place}, "chaos.output")


def _as_row(value: object) -> Row:
    return Row(repr(value))


def _texts(table: Any) -> list[str]:
    return sorted(text for chunk in table.column("text").chunks for text in python_values(chunk))


SINKS: Mapping[str, OutputSink] = {"files": Files(), "delta": Delta(), "iceberg": Iceberg()}


class Output:
    """The directory of a sink, which can be put back to what it was."""

    def __init__(self, sink: str, directory: Path) -> None:
        self.sink, self.directory = SINKS[sink], directory / "output"
        self._saved = directory / "saved"
        self.empty()

    def rows(self) -> list[str]:
        """The rows that anyone can see, sorted."""
        return self.sink.rows(self.directory)

    def empty(self) -> None:
        """Begin without any output."""
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)

    def save(self) -> None:
        """Remember the output as it is."""
        shutil.rmtree(self._saved, ignore_errors=True)
        shutil.copytree(self.directory, self._saved)

    def put_back(self) -> None:
        """Make the output what it was when it was saved; paths in it stay true."""
        shutil.rmtree(self.directory)
        shutil.copytree(self._saved, self.directory)
