"""Partitions of tables in files: columns that stand in the path, `dt=2024-01-01/hour=10`, and not in the files.

Promises: what is written under a path is read from it again; a NULL has a name of its own; characters that a path
cannot hold are escaped as Flink escapes them. What else a path tells (file.path, file.name) can be columns too.
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
from millstream.connectors.files.ranges import FileFormat, Found, OpenRange
from millstream.connectors.files.writers import MergingFactory
from millstream.errors import UserError
from millstream.formats import Format
from millstream.sql.columns import SqlTypeInfo, column, converter, is_nested, row_type_info
from millstream.sql.connector.table_formats import Columns, ColumnsFormat
from millstream.sql.evaluation.evaluate import EvaluationFailed, constant
from millstream.sql.expressions.nodes import Convert, Lit
from millstream.sql.functions import text
from millstream.sql.types import data_types as t
from millstream.types.arrow_types import python_values
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
    """A path that does not say what a partition column holds."""

    hint = "files of a partitioned table are below folders such as dt=2024-01-01"

    def __init__(self, path: str, name: str, why: str) -> None:
        super().__init__(f"{path} does not say what column '{name}' is: {why}")


# ------------------------------------------------------------------------------------------------------------ reading


class PartitionedFiles(FileFormat):
    """A format whose records get columns from the path of their file: partitions, and what is known of the file."""

    def __init__(self, inner: FileFormat, added: t.RowType, told: Sequence[str], default_name: str) -> None:
        """`told` are the keys of metadata among the columns that are added, which are the last of them."""
        self._inner, self._added, self._told, self._default = inner, added, tuple(told), default_name
        self.on_error, self.least_range, self.unpacks = inner.on_error, inner.least_range, inner.unpacks

    @property
    def splittable(self) -> bool:
        """As the format itself."""
        return self._inner.splittable

    def units(self, stream: BinaryIO) -> list[tuple[int, int]] | None:
        """As the format itself."""
        return self._inner.units(stream)

    def record_size(self, stream: BinaryIO) -> float:
        """As the format itself."""
        return self._inner.record_size(stream)

    @cached_property
    def _kind(self) -> RowTypeInfo:
        inner = self._inner.type_info()
        assert isinstance(inner, RowTypeInfo)
        kinds = [*inner.get_field_types(), *(SqlTypeInfo(kind) for kind in self._added.types)]
        return RowTypeInfo(kinds, [*inner.get_field_names(), *self._added.names])

    def type_info(self) -> TypeInformation:
        """Rows of the format with the columns behind them."""
        return self._kind

    def read(self, part: OpenRange, block: int) -> Iterator[Found]:
        """As FileFormat promises."""
        values = self._values(part.path)
        for found in self._inner.read(part, block):
            yield Found(self._with(found.values, values), found.rejected)

    def _with(self, records: Any, values: list[Any]) -> Any:
        if isinstance(records, pa.Array):
            count, width = len(records), len(self._inner.type_info().get_field_names())  # type: ignore[attr-defined]
            added = [column([value], kind) for value, kind in zip(values, self._added.types, strict=True)]
            nothing = pa.array([0] * count, pa.int32())
            arrays = [records.field(i) for i in range(width)] + [each.take(nothing) for each in added]
            return pa.StructArray.from_arrays([*arrays, records.field(width)], fields=list(self._kind.arrow_type))
        names = self._kind.get_field_names()
        return [Row._from(names, [*row._values, *values], row._row_kind) for row in records]

    def _values(self, path: str) -> list[Any]:
        """What the path says about each column."""
        folders = dict(part.split("=", 1) for part in path.split("/")[:-1] if "=" in part)
        width = len(self._added) - len(self._told)
        pairs = list(zip(self._added.names, self._added.types, strict=True))
        found = [self._partition(path, folders, name, kind) for name, kind in pairs[:width]]
        for key in self._told:
            size, modified = paths.look_at(path)
            known = {
                "file.path": path, "file.name": os.path.basename(path), "file.size": size,
                "file.modification-time": converter(FILE_METADATA["file.modification-time"])(modified // 1_000_000),
            }  # fmt: skip
            found.append(known[key])
        return found

    def _partition(self, path: str, folders: dict[str, str], name: str, kind: t.DataType) -> Any:
        written = folders.get(_escaped(name))
        if written is None:
            raise BadPartition(path, name, "no folder of it has that name")
        if written == self._default:
            return None
        word = unquote(written)
        if t.is_timestamp(kind):
            word = word.replace("T", " ") + (":00" if word.count(":") == 1 else "")
        try:
            return constant(Convert(kind, Lit(t.STRING.not_null(), word)))
        except EvaluationFailed as problem:
            raise BadPartition(path, name, problem.message) from None


# ------------------------------------------------------------------------------------------------------------ writing


class PartitionBuckets(BucketAssigner):
    """Rows are below the folder of their partition."""

    columnar = True

    def __init__(self, row: t.RowType, names: Sequence[str], default_name: str) -> None:
        self._default = default_name
        self._columns = [(_escaped(name), row.names.index(name), row.types[row.names.index(name)]) for name in names]

    def get_bucket_id(self, element: Any, context: BucketContext) -> str:
        """The folders, in the order of PARTITIONED BY."""
        return "/".join(f"{name}={self._text(element._values[place], kind)}" for name, place, kind in self._columns)

    def buckets_of(self, records: pa.Array, context: BucketContext) -> Sequence[tuple[str, pa.Array]]:
        """As BucketAssigner promises."""
        folders = [self._folders(name, records.field(place), kind) for name, place, kind in self._columns]
        buckets = pc.binary_join_element_wise(*folders, "/").dictionary_encode()
        names = python_values(buckets.dictionary)
        if len(names) < 2:
            return [(name, records) for name in names]
        numbers = buckets.indices.to_numpy()
        ordered = records.take(pa.array(np.argsort(numbers, kind="stable")))
        ends = np.bincount(numbers).cumsum().tolist()
        return [
            (name, ordered.slice(start, end - start))
            for name, start, end in zip(names, [0, *ends[:-1]], ends, strict=True)
        ]

    def _folders(self, name: str, values: pa.Array, kind: t.DataType) -> pa.Array:
        """The folder of each value; the text of a value is made once for all that are equal."""
        places = None
        if not is_nested(kind) and not isinstance(kind, t.FloatType | t.DoubleType):  # 0.0 equals -0.0
            encoded = values.dictionary_encode(null_encoding="encode")
            values, places = encoded.dictionary, encoded.indices
        shown = SqlTypeInfo(kind).from_arrow(values)
        folders = pa.array([f"{name}={self._text(value, kind)}" for value in shown], pa.string())
        return folders if places is None else folders.take(places)

    def _text(self, value: Any, kind: t.DataType) -> str:
        if value is None or value == "":
            return self._default
        if isinstance(value, datetime.datetime):
            shown = value.replace(tzinfo=None).isoformat()
            return _escaped(shown.removesuffix(":00") if shown.count(":") == 2 and not value.second else shown)
        return _escaped(text.to_text(converter(kind)(value), kind))


def _escaped(word: str) -> str:
    return _ESCAPED.sub(lambda found: f"%{ord(found.group()):02X}", word)


class ColumnsEncoder(FormatEncoder):
    """Lines of some columns of a table's rows, of whole columns where the format can do that."""

    columnar = True

    def __init__(self, line_format: Format, columns: Columns, row: t.RowType) -> None:
        super().__init__(ColumnsFormat(line_format, columns))
        self._inner, self._columns, self._row = line_format, columns, row

    def encode_many(self, elements: Any, stream: BinaryIO) -> None:
        """As FormatEncoder promises, or the rows of an Arrow array."""
        if isinstance(elements, pa.Array):
            lines = self._inner.encode_lines(self._columns.arrays_of(elements), self._end)
            if lines is not None:
                stream.write(lines)
                return
            elements = row_type_info(self._row).from_arrow(elements)
        super().encode_many(elements, stream)


class _ColumnsWriter(BulkWriter):
    def __init__(self, inner: BulkWriter, columns: Columns) -> None:
        self._inner, self._columns = inner, columns

    def add_elements(self, elements: list[Any]) -> None:
        """As BulkWriter promises."""
        self._inner.add_elements(self._columns.of(elements))

    def finish(self) -> None:
        """As BulkWriter promises."""
        self._inner.finish()


class ColumnsWriterFactory(MergingFactory):
    """Writers that are given some columns of a table's rows."""

    def __init__(self, inner: BulkWriterFactory, columns: Columns) -> None:
        self._inner, self._columns = inner, columns

    def create(self, stream: BinaryIO) -> BulkWriter:
        """As BulkWriterFactory promises."""
        return _ColumnsWriter(self._inner.create(stream), self._columns)

    def merge(self, streams: Sequence[BinaryIO], into: BinaryIO) -> None:
        """As the factory itself."""
        assert isinstance(self._inner, MergingFactory)
        self._inner.merge(streams, into)
