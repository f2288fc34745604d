"""Partition and metadata columns of the filesystem connector.

Partition columns are not in the files but in their path, as in `dt=2024-01-01/hour=10`. Metadata columns are properties
of the file: file.path, file.name, file.size and file.modification-time.

Promises: a partition value is read as it was written. NULL has a directory name of its own. Characters that a path
cannot contain are escaped as in Flink.
Does not know: formats, options."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, BinaryIO
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from millstream.connector.serialization_schema import BulkWriter, BulkWriterFactory
from millstream.connectors.files import paths
from millstream.connectors.files.buckets import BucketAssigner, BucketContext
from millstream.connectors.files.encoders import FormatEncoder
from millstream.connectors.files.ranges import FileFormat, OpenRange, ReadRecords
from millstream.connectors.files.writers import MergingFactory
from millstream.errors import UserError
from millstream.formats import Format
from millstream.sql.columns import SqlTypeInfo, column, create_internal_converter, create_row_type_info, is_nested
from millstream.sql.connector.table_formats import Columns, ColumnsFormat
from millstream.sql.evaluation.evaluate import EvaluationFailed, evaluate_constant
from millstream.sql.expressions.nodes import Convert, Lit
from millstream.sql.functions import text
from millstream.sql.types import data_types as t
from millstream.types.arrow_types import to_python_values
from millstream.types.factory import RowTypeInfo
from millstream.types.row import Row
from millstream.types.type_information import TypeInformation

FILE_METADATA: dict[str, t.DataType] = {
    "file.path": t.STRING,
    "file.name": t.STRING,
    "file.size": t.BIGINT,
    "file.modification-time": t.LocalZonedTimestampType(3),
}
DEFAULT_NAME = "__DEFAULT_PARTITION__"
_ESCAPED = re.compile(r'[\x00-\x1f"#%\'*/:=?\\\x7f{\[\]^]')


class BadPartition(UserError):
    """The path of a file does not contain a valid value of a partition column."""

    hint = "files of a partitioned table are below directories such as dt=2024-01-01"

    def __init__(self, path: str, name: str, problem: str) -> None:
        super().__init__(f"{path} has no valid value of partition column '{name}': {problem}")


# ------------------------------------------------------------------------------------------------------------ reading


class PartitionedFiles(FileFormat):
    """A format that adds columns to the records of another one: partition columns, then metadata columns."""

    def __init__(self, inner: FileFormat, added: t.RowType, metadata: Sequence[str], default_name: str) -> None:
        """`metadata` are the metadata keys of the last columns of `added`; those before are partition columns."""
        self._inner, self._added, self._metadata, self._default = inner, added, tuple(metadata), default_name
        self.on_error, self.least_range, self.unpacks = inner.on_error, inner.least_range, inner.unpacks

    @property
    def splittable(self) -> bool:
        """Whether the inner format is splittable."""
        return self._inner.splittable

    def units(self, stream: BinaryIO) -> list[tuple[int, int]] | None:
        """Return the units of the inner format."""
        return self._inner.units(stream)

    def record_size(self, stream: BinaryIO) -> float:
        """Return the record size of the inner format."""
        return self._inner.record_size(stream)

    @cached_property
    def _row_type(self) -> RowTypeInfo:
        inner = self._inner.type_info()
        assert isinstance(inner, RowTypeInfo)
        types = [*inner.get_field_types(), *(SqlTypeInfo(data_type) for data_type in self._added.types)]
        return RowTypeInfo(types, [*inner.get_field_names(), *self._added.names])

    def type_info(self) -> TypeInformation:
        """Return the type of the inner format's rows with the added columns at the end."""
        return self._row_type

    def read(self, part: OpenRange, block: int) -> Iterator[ReadRecords]:
        """Read with the inner format, and add the columns to its records."""
        values = self._read_values(part.path)
        for records in self._inner.read(part, block):
            yield ReadRecords(self._add_values(records.values, values), records.rejected)

    def _add_values(self, records: Any, values: list[Any]) -> Any:
        if isinstance(records, pa.Array):
            count, width = len(records), len(self._inner.type_info().get_field_names())  # type: ignore[attr-defined]
            added = [column([value], data_type) for value, data_type in zip(values, self._added.types, strict=True)]
            repeat_first = pa.array([0] * count, pa.int32())
            arrays = [records.field(i) for i in range(width)] + [array.take(repeat_first) for array in added]
            return pa.StructArray.from_arrays([*arrays, records.field(width)], fields=list(self._row_type.arrow_type))
        names = self._row_type.get_field_names()
        return [Row._from(names, [*row._values, *values], row._row_kind) for row in records]

    def _read_values(self, path: str) -> list[Any]:
        """Return the values of the added columns for a file."""
        directories = dict(part.split("=", 1) for part in path.split("/")[:-1] if "=" in part)
        partition_count = len(self._added) - len(self._metadata)
        columns = list(zip(self._added.names, self._added.types, strict=True))[:partition_count]
        values = [self._parse_partition(path, directories, name, data_type) for name, data_type in columns]
        for key in self._metadata:
            size, modified = paths.file_status(path)
            modification_time = create_internal_converter(FILE_METADATA["file.modification-time"])
            file_metadata = {
                "file.path": path, "file.name": os.path.basename(path), "file.size": size,
                "file.modification-time": modification_time(modified // 1_000_000),
            }  # fmt: skip
            values.append(file_metadata[key])
        return values

    def _parse_partition(self, path: str, directories: dict[str, str], name: str, data_type: t.DataType) -> Any:
        escaped_value = directories.get(_escape(name))
        if escaped_value is None:
            raise BadPartition(path, name, f"there is no directory '{_escape(name)}=...' in the path")
        if escaped_value == self._default:
            return None
        value = unquote(escaped_value)
        if t.is_timestamp(data_type):
            value = value.replace("T", " ") + (":00" if value.count(":") == 1 else "")
        try:
            return evaluate_constant(Convert(data_type, Lit(t.STRING.not_null(), value)))
        except EvaluationFailed as problem:
            raise BadPartition(path, name, problem.message) from None


# ------------------------------------------------------------------------------------------------------------ writing


class PartitionBuckets(BucketAssigner):
    """Assigns rows to the directory of their partition."""

    columnar = True

    def __init__(self, row: t.RowType, names: Sequence[str], default_name: str) -> None:
        self._default = default_name
        self._columns = [(_escape(name), row.names.index(name), row.types[row.names.index(name)]) for name in names]

    def get_bucket_id(self, element: Any, context: BucketContext) -> str:
        """Return the path of the partition, with columns in the order of PARTITIONED BY."""
        return "/".join(
            f"{name}={self._format(element._values[index], data_type)}" for name, index, data_type in self._columns
        )

    def buckets_of(self, records: pa.Array, context: BucketContext) -> Sequence[tuple[str, pa.Array]]:
        """Return the rows of each partition, as one array each."""
        directories = [
            self._format_directories(name, records.field(index), data_type) for name, index, data_type in self._columns
        ]
        buckets = pc.binary_join_element_wise(*directories, "/").dictionary_encode()
        names = to_python_values(buckets.dictionary)
        if len(names) < 2:
            return [(name, records) for name in names]
        bucket_indexes = buckets.indices.to_numpy()
        ordered = records.take(pa.array(np.argsort(bucket_indexes, kind="stable")))
        ends = np.bincount(bucket_indexes).cumsum().tolist()
        return [
            (name, ordered.slice(start, end - start))
            for name, start, end in zip(names, [0, *ends[:-1]], ends, strict=True)
        ]

    def _format_directories(self, name: str, values: pa.Array, data_type: t.DataType) -> pa.Array:
        """Return the directory of each value; equal values are formatted once."""
        indexes = None
        if not is_nested(data_type) and not isinstance(data_type, t.FloatType | t.DoubleType):  # 0.0 equals -0.0
            encoded = values.dictionary_encode(null_encoding="encode")
            values, indexes = encoded.dictionary, encoded.indices
        external_values = SqlTypeInfo(data_type).from_arrow(values)
        directories = pa.array([f"{name}={self._format(value, data_type)}" for value in external_values], pa.string())
        return directories if indexes is None else directories.take(indexes)

    def _format(self, value: Any, data_type: t.DataType) -> str:
        if value is None or value == "":
            return self._default
        if isinstance(value, datetime.datetime):
            timestamp = value.replace(tzinfo=None).isoformat()
            has_no_seconds = timestamp.count(":") == 2 and not value.second
            return _escape(timestamp.removesuffix(":00") if has_no_seconds else timestamp)
        return _escape(text.to_text(create_internal_converter(data_type)(value), data_type))


def _escape(part: str) -> str:
    return _ESCAPED.sub(lambda match: f"%{ord(match.group()):02X}", part)


class ColumnsEncoder(FormatEncoder):
    """Encodes some columns of a table's rows as lines; whole columns at once if the format supports it."""

    columnar = True

    def __init__(self, line_format: Format, columns: Columns, row: t.RowType) -> None:
        super().__init__(ColumnsFormat(line_format, columns))
        self._inner, self._columns, self._row = line_format, columns, row

    def encode_many(self, elements: Any, stream: BinaryIO) -> None:
        """Encode a list of rows, or the rows of an Arrow array."""
        if isinstance(elements, pa.Array):
            lines = self._inner.encode_lines(self._columns.project_arrays(elements), self._end)
            if lines is not None:
                stream.write(lines)
                return
            elements = create_row_type_info(self._row).from_arrow(elements)
        super().encode_many(elements, stream)


class _ColumnsWriter(BulkWriter):
    def __init__(self, inner: BulkWriter, columns: Columns) -> None:
        self._inner, self._columns = inner, columns

    def add_elements(self, elements: list[Any]) -> None:
        """Write the columns of the rows with the inner writer."""
        self._inner.add_elements(self._columns.project(elements))

    def finish(self) -> None:
        """Finish the inner writer."""
        self._inner.finish()


class ColumnsWriterFactory(MergingFactory):
    """Creates bulk writers of some columns of a table's rows."""

    def __init__(self, inner: BulkWriterFactory, columns: Columns) -> None:
        self._inner, self._columns = inner, columns

    def create(self, stream: BinaryIO) -> BulkWriter:
        """Create a writer."""
        return _ColumnsWriter(self._inner.create(stream), self._columns)

    def merge(self, streams: Sequence[BinaryIO], into: BinaryIO) -> None:
        """Merge files with the inner factory."""
        assert isinstance(self._inner, MergingFactory)
        self._inner.merge(streams, into)
