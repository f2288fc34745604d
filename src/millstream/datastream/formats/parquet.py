"""PyFlink's `datastream.formats.parquet`: Parquet files as rows, or as records of an Avro schema.

Promises: PyFlink's names; only the columns of the type are read.
Does not know: how Parquet is read; `millstream.formats` does."""

from __future__ import annotations

import logging
from typing import Any

from millstream.config.configuration import Configuration
from millstream.connector.serialization_schema import BulkWriterFactory
from millstream.connectors.files import AvroParquetWriterFactory, ParquetFiles, ParquetWriterFactory, StreamFormat
from millstream.connectors.files.bulk import ParquetRecords
from millstream.datastream.formats.avro import AvroSchema, GenericRecordAvroTypeInfo
from millstream.datastream.formats.row_types import row_type_of
from millstream.formats import avro_schemas

__all__ = ["AvroParquetReaders", "AvroParquetWriters", "ParquetBulkWriters", "ParquetColumnarRowInputFormat"]

_log = logging.getLogger("millstream.files")

_COMPRESSION, _BLOCK_SIZE = "parquet.compression", "parquet.block.size"


class AvroParquetReaders:
    """Readers of Parquet files whose records an Avro schema describes.

    Example:
        >>> from millstream.datastream.connectors.file_system import FileSource
        >>> from millstream.datastream.formats.avro import AvroSchema
        >>> text = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
        >>> schema = AvroSchema.parse_string(text)
        >>> reader = AvroParquetReaders.for_generic_record(schema)
        >>> source = FileSource.for_record_stream_format(reader, "/data/orders").build()

    """

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> StreamFormat:
        """Create a format that reads records as dicts.

        Args:
            schema: The schema of the records.

        """
        return ParquetRecords(avro_schemas.format_type_of(schema.schema), GenericRecordAvroTypeInfo(schema))


class AvroParquetWriters:
    """Writers of Parquet files whose records an Avro schema describes.

    Example:
        >>> from millstream.datastream.connectors.file_system import FileSink
        >>> from millstream.datastream.formats.avro import AvroSchema
        >>> text = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
        >>> schema = AvroSchema.parse_string(text)
        >>> sink = FileSink.for_bulk_format("/data/orders", AvroParquetWriters.for_generic_record(schema)).build()

    """

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> BulkWriterFactory:
        """Create a factory of writers of dicts.

        Args:
            schema: The schema of the records.

        """
        return AvroParquetWriterFactory(schema.schema)


class ParquetColumnarRowInputFormat(ParquetFiles):
    """Reads Parquet files as rows; only the columns of `row_type` are read.

    Timestamps are not converted; `is_utc_timestamp` and `hadoop_config` have no effect.

    Example:
        >>> from millstream.common import Types
        >>> from millstream.datastream.connectors.file_system import FileSource
        >>> bulk_format = ParquetColumnarRowInputFormat(Types.ROW_NAMED(["name"], [Types.STRING()]))
        >>> source = FileSource.for_bulk_file_format(bulk_format, "/data/names").build()

    """

    def __init__(
        self,
        row_type: Any,
        hadoop_config: Configuration | None = None,
        batch_size: int = 2048,
        is_utc_timestamp: bool = False,
        is_case_sensitive: bool = True,
    ) -> None:
        if hadoop_config is not None and hadoop_config.key_set():
            _log.warning("hadoop_config has no effect: Arrow reads Parquet files")
        super().__init__(row_type_of(row_type), case_sensitive=is_case_sensitive, batch=batch_size)


class ParquetBulkWriters:
    """Factories of writers of Parquet files, for `FileSink.for_bulk_format`.

    Example:
        >>> from millstream.common import Types
        >>> from millstream.datastream.connectors.file_system import FileSink
        >>> row_type = Types.ROW_NAMED(["name"], [Types.STRING()])
        >>> sink = FileSink.for_bulk_format("/data/names", ParquetBulkWriters.for_row_type(row_type)).build()

    """

    @staticmethod
    def for_row_type(
        row_type: Any,
        hadoop_config: Configuration | None = None,
        utc_timestamp: bool = False,  # noqa: ARG004
    ) -> BulkWriterFactory:
        """Create a factory of writers of rows.

        Args:
            row_type: The type of the rows.
            hadoop_config: Only `parquet.compression` and `parquet.block.size` have an effect.
            utc_timestamp: Has no effect: timestamps are written in UTC.

        """
        config = hadoop_config or Configuration()
        return ParquetWriterFactory(
            row_type_of(row_type),
            compression=config.get_string(_COMPRESSION, "SNAPPY"),
            block_size=config.get_integer(_BLOCK_SIZE, 128 << 20),
        )
