"""Readers of bulk-encoded files: Parquet, ORC and Avro.

Promises: any range of bytes of a Parquet or Avro file can be read by itself, each record from exactly one range; a
record that does not fit the declared type is rejected by itself, a file that is damaged fails as a whole.
Does not know: which files there are, or what a range is for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

import pyarrow as pa

from millstream.connectors.files.formats import StreamFormat
from millstream.connectors.files.ranges import FileFormat, OpenRange, ReadRecords, Rejected
from millstream.errors import UserError
from millstream.formats import FormatType, OnError, avro, avro_schemas, orc, parquet
from millstream.formats.contract import BadRecord, Decoded, reason_of
from millstream.types.factory import TypeInformation, TypeMismatch

_BATCH = 8192


class DamagedFile(UserError):
    """A file that is not valid in its format."""

    def __init__(self, path: str, problem: object) -> None:
        self.path = path
        super().__init__(f"cannot unpack {path}: {problem}", hint="the file is damaged, or has the wrong suffix")


class BulkFormat(FileFormat):
    """Reads many records of a file at once. Files are not decompressed: these formats have their own compression.

    Example:
        >>> from millstream.common import Types
        >>> from millstream.datastream.connectors.file_system import FileSource
        >>> row_type = Types.ROW_NAMED(["id", "total"], [Types.LONG(), Types.DOUBLE()])
        >>> source = FileSource.for_bulk_file_format(ParquetFiles(row_type), "/data/orders").build()

    """

    unpacks = False

    def __init__(
        self, schema: TypeInformation | pa.Schema | FormatType, on_error: str | OnError = OnError.FAIL
    ) -> None:
        self.data_type = FormatType.of(schema)
        self.on_error = OnError.of(on_error)

    def type_info(self) -> TypeInformation:
        """Return the declared type of the rows."""
        return self.data_type.type_info()

    def read(self, part: OpenRange, block: int) -> Iterator[ReadRecords]:
        """Yield the records of a range."""
        record_count = 0
        try:
            for decoded in self._decode(part, block):
                rejected = [
                    Rejected(part.path, record_count + invalid.index, invalid.data, invalid.reason)
                    for invalid in decoded.errors
                ]
                record_count += len(decoded.values) + len(rejected)
                yield self.apply_error_policy(ReadRecords(decoded.values, rejected))
        except (pa.ArrowException, *_DAMAGE) as problem:
            raise DamagedFile(part.path, reason_of(problem)) from problem
        except OSError as problem:
            if problem.errno is not None:
                raise
            raise DamagedFile(
                part.path, reason_of(problem)
            ) from problem  # Arrow's error for a file that is not of this format

    @abstractmethod
    def _decode(self, part: OpenRange, block: int) -> Iterator[Decoded]:
        """Yield the decoded records of a range."""


_DAMAGE = (ValueError, EOFError, LookupError, TypeError, ArithmeticError, RecursionError)


class ParquetFiles(BulkFormat):
    """Parquet files, by row groups; only the columns of the type are read.

    Example:
        >>> from millstream.common import Types
        >>> row_type = Types.ROW_NAMED(["id", "total"], [Types.LONG(), Types.DOUBLE()])
        >>> orders = ParquetFiles(row_type, on_error="skip", case_sensitive=False)

    """

    def __init__(
        self,
        schema: TypeInformation | pa.Schema | FormatType,
        on_error: str | OnError = OnError.FAIL,
        *,
        case_sensitive: bool = True,
        batch: int = _BATCH,
    ) -> None:
        super().__init__(schema, on_error)
        self._case_sensitive, self._batch = case_sensitive, batch

    @property
    def splittable(self) -> bool:
        """True: files are split by row groups."""
        return True

    def units(self, stream: BinaryIO) -> list[tuple[int, int]]:
        """Return the offsets and row counts of the row groups."""
        return parquet.layout(stream)

    def _decode(self, part: OpenRange, block: int) -> Iterator[Decoded]:
        end = part.end if part.end is not None else 1 << 62
        return parquet.read(part.stream, self.data_type, part.start, end, max(self._batch, block), self._case_sensitive)


class ParquetRecords(ParquetFiles, StreamFormat):
    """Parquet files with records as dicts."""

    def __init__(self, schema: FormatType, record_type: TypeInformation) -> None:
        super().__init__(schema)
        self._record_type = record_type

    def type_info(self) -> TypeInformation:
        """Return the type of the dicts."""
        return self._record_type

    def _decode(self, part: OpenRange, block: int) -> Iterator[Decoded]:
        row_type = self.data_type.type_info()
        for decoded in super()._decode(part, block):
            rows = decoded.rows(row_type)
            yield Decoded([row.as_dict(True) for row in rows], decoded.origins, decoded.errors)


class OrcFiles(BulkFormat):
    """ORC files; only the columns of the type are read.

    Example:
        >>> from millstream.common import Types
        >>> orders = OrcFiles(Types.ROW_NAMED(["id", "total"], [Types.LONG(), Types.DOUBLE()]))

    """

    def _decode(self, part: OpenRange, block: int) -> Iterator[Decoded]:
        return orc.read(part.stream, self.data_type, max(_BATCH, block), True)


class AvroFiles(BulkFormat):
    """Avro container files, split by blocks. Fields are matched by name; a field that a file lacks is null.

    Example:
        >>> from millstream.common import Types
        >>> orders = AvroFiles(Types.ROW_NAMED(["id", "total"], [Types.LONG(), Types.DOUBLE()]))

    """

    least_range = 1 << 16

    @property
    def splittable(self) -> bool:
        """True: files are split by blocks."""
        return True

    def record_size(self, stream: BinaryIO) -> float:
        """Estimate the size of a record from the first block."""
        return avro.ContainerFile(stream, 1 << 62).record_size()

    def _decode(self, part: OpenRange, block: int) -> Iterator[Decoded]:
        convert, row_type = avro_schemas.from_avro(self.data_type), self.data_type.type_info()
        file = avro.ContainerFile(part.stream, _size(part))
        for records in file.records(part.start, part.end if part.end is not None else 1 << 62):
            yield _convert_records(records, convert, row_type)


class AvroRecords(AvroFiles):
    """Avro container files with records as dicts of their schema."""

    def __init__(self, schema: Any, record_type: TypeInformation) -> None:
        super().__init__(avro_schemas.format_type_of(schema))
        self._record_type = record_type

    def type_info(self) -> TypeInformation:
        """Return the type of the dicts."""
        return self._record_type

    def _decode(self, part: OpenRange, block: int) -> Iterator[Decoded]:
        file = avro.ContainerFile(part.stream, _size(part))
        for records in file.records(part.start, part.end if part.end is not None else 1 << 62):
            yield Decoded(records)


def _size(part: OpenRange) -> int:
    if part.size is not None:
        return part.size
    return part.stream.seek(0, 2)


def _convert_records(records: Sequence[Any], convert: Callable[[Any], Any], row_type: TypeInformation) -> Decoded:
    """Convert records to values of the type: all at once if all fit, else one by one."""
    try:
        return Decoded(row_type.conform([convert(record) for record in records]))
    except (TypeMismatch, *avro.REFUSED):
        pass
    values: list[Any] = []
    origins: list[int] = []
    errors: list[BadRecord] = []
    for index, record in enumerate(records):
        try:
            values += row_type.conform([convert(record)])
            origins.append(index)
        except (TypeMismatch, *avro.REFUSED) as problem:
            errors.append(BadRecord(index, repr(record).encode(), reason_of(problem)))
    return Decoded(values, origins, tuple(errors))
