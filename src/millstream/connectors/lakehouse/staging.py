"""The writer of table sinks: Parquet files that become part of a table with their commit.

Promises: file names are used by one attempt only, and files are on the device before the driver gets their
names. Files of a partition hold rows of that partition only.
Does not know: table formats, commits."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from millstream.connector.sink import SinkWriter, WriterContext
from millstream.connector.staged import Committable, NotStaged, StagedName
from millstream.connectors.lakehouse.columns import to_table
from millstream.files.errors import ConnectorStorageFailure
from millstream.files.local import LocalFileSystem
from millstream.types.arrow_types import to_python_values
from millstream.types.factory import RowTypeInfo

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_ROLL_BYTES = 128 << 20  # bytes in memory after which a file is written within an epoch


@dataclass(frozen=True, slots=True)
class StagedDataFile(Committable):
    """A committable: a file below the table's location, and a description of its content."""

    output: ClassVar[str] = "a file of a table sink"
    owner: str
    epoch: int
    path: str
    size: int
    rows: int
    partition: dict[str, str | None]
    nulls: dict[str, int]
    at: int
    generation: int = 0

    def __post_init__(self) -> None:
        parts = str(self.path).split("/")
        if ".." in parts or not parts[0]:
            raise NotStaged(self.path, self.output)


def tag(text: str) -> str:
    """Return a short hash of a text, for file names."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def digest(files: Sequence[StagedDataFile]) -> str:
    """Return a digest of the files of a commit; it is stored with the commit, to recognise a repeat."""
    return hashlib.blake2b("\n".join(sorted(file.path for file in files)).encode(), digest_size=16).hexdigest()


def open_location(location: str) -> tuple[pafs.FileSystem, str]:
    """Return the Arrow file system of a location, and the path on it."""
    try:
        if "://" not in location:
            return pafs.LocalFileSystem(), os.path.abspath(location)
        files, path = pafs.FileSystem.from_uri(location)
        return files, path
    except (pa.ArrowException, OSError, ValueError) as problem:
        raise ConnectorStorageFailure(location, "open", problem) from problem


class ParquetWriter(SinkWriter):
    """Writes the records of one epoch into Parquet files below a location."""

    columnar = True

    def __init__(
        self,
        location: str,
        directory: str,
        row_type: RowTypeInfo,
        schema: pa.Schema,
        partition_by: Sequence[str],
        context: WriterContext,
        *,
        partition_columns_inside: bool,
    ) -> None:
        """`directory` is relative to the location; `partition_columns_inside`: whether files contain these columns."""
        self._location, self._directory = location, directory
        self._row_type, self._schema = row_type, schema
        self._partition_by = list(partition_by)
        self._inside = partition_columns_inside
        self._context = context
        self._buffered: list[pa.Table] = []
        self._bytes = 0
        self._written: list[StagedDataFile] = []

    def write(self, values: Any, timestamps: Sequence[int | None] | None) -> None:
        """Buffer records; a large buffer is written to a file."""
        if not len(values):
            return
        table = self.convert(values)
        self._buffered.append(table)
        self._bytes += table.nbytes
        if self._bytes >= _ROLL_BYTES:
            self._flush()

    def convert(self, values: Any) -> pa.Table:
        """Return records as columns of a file."""
        return to_table(values, self._row_type, self._schema)

    def combine(self, tables: list[pa.Table]) -> pa.Table:
        """Return the rows of a file."""
        return pa.concat_tables(tables)

    def prepare_commit(self) -> list[Any]:
        """Write the remaining rows and return all files."""
        self._flush()
        return [file.to_json() for file in self._written]

    def _flush(self) -> None:
        if not self._buffered:
            return
        whole = self.combine(self._buffered)
        self._buffered, self._bytes = [], 0
        for partition, part in split_by_partition(whole, self._partition_by):
            self._write_file(partition, part if self._inside else part.drop_columns(self._partition_by))

    def _write_file(self, partition: dict[str, str | None], table: pa.Table) -> None:
        context = self._context
        owner = f"millstream:{context.job}:{context.sink}"
        number = f"{context.epoch:08d}-{context.subtask:05d}-{len(self._written):03d}"
        name = f"part-{number}-{tag(owner)}-{tag(context.attempt)}.parquet"
        folders = [
            f"{key}={quote(value, safe='') if value is not None else NULL_PARTITION}"
            for key, value in partition.items()
        ]
        path = "/".join([*([self._directory] if self._directory else []), *folders, name])
        files, base = open_location(self._location)
        target = f"{base}/{path}"
        try:
            if isinstance(files, pafs.LocalFileSystem):
                LocalFileSystem(private=False).make_dirs(os.path.dirname(target))
            else:
                files.create_dir(os.path.dirname(target), recursive=True)
            with files.open_output_stream(target) as stream:
                pq.write_table(table, stream, compression="zstd")
            if isinstance(files, pafs.LocalFileSystem):
                _sync_file(target)
            size = files.get_file_info(target).size
        except (pa.ArrowException, OSError) as problem:
            raise ConnectorStorageFailure(target, "write", problem) from problem
        nulls = {field.name: table.column(field.name).null_count for field in table.schema if _is_flat(field.type)}
        self._written.append(
            StagedDataFile(
                owner,
                context.epoch,
                path,
                size,
                table.num_rows,
                partition,
                nulls,
                context.now,
                StagedName.of(context).generation,
            )
        )

    def abort(self) -> None:
        """Remove what was written."""
        remove_files(self._location, self._written)
        self._written, self._buffered = [], []


def split_by_partition(table: pa.Table, columns: Sequence[str]) -> Iterator[tuple[dict[str, str | None], pa.Table]]:
    """Yield the rows of each partition, with the values of the partition columns as text."""
    if not columns:
        yield {}, table
        return
    groups = table.select(list(columns)).group_by(list(columns), use_threads=False).aggregate([])
    distinct = [to_python_values(groups.column(name).combine_chunks()) for name in columns]
    texts = [as_texts(groups.column(name)) for name in columns]
    for values, shown in zip(zip(*distinct, strict=True), zip(*texts, strict=True), strict=True):
        mask: Any = None
        for name, value in zip(columns, values, strict=True):
            column = table.column(name)
            same = (
                pc.is_null(column)
                if value is None
                else pc.fill_null(pc.equal(column, pa.scalar(value, column.type)), False)
            )
            mask = same if mask is None else pc.and_(mask, same)
        yield dict(zip(columns, shown, strict=True)), table.filter(mask)


def as_texts(column: pa.ChunkedArray) -> list[str | None]:
    """Return the values of a column as texts, as in the names of partitions."""
    return list(to_python_values(column.cast(pa.string()).combine_chunks()))


def remove_files(location: str, staged: Sequence[StagedDataFile]) -> None:
    """Delete files, ignoring errors: files that are left are not part of the table."""
    files, base = open_location(location)
    for file in staged:
        try:
            files.delete_file(f"{base}/{file.path}")
        except (pa.ArrowException, OSError):
            continue


def _is_flat(data_type: pa.DataType) -> bool:
    return not pa.types.is_nested(data_type)


def _sync_file(path: str) -> None:
    with open(path, "rb") as file:
        os.fsync(file.fileno())
    LocalFileSystem().sync_dir(os.path.dirname(path))
