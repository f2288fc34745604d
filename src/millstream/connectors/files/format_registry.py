"""File formats by name, for the filesystem connector of SQL.

Promises: formats have Flink's options; an unknown name or option is refused.
Does not know: tables, paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from millstream.config.configuration import ConfigOption
from millstream.connector.serialization_schema import BulkWriterFactory, Encoder
from millstream.connectors.files.bulk import AvroFiles, BulkFormat, OrcFiles, ParquetFiles
from millstream.connectors.files.csv_files import CsvFiles
from millstream.connectors.files.encoders import FormatEncoder
from millstream.connectors.files.formats import StreamFormat
from millstream.connectors.files.ranges import FileFormat
from millstream.connectors.files.writers import AvroWriterFactory, OrcWriterFactory, ParquetWriterFactory
from millstream.formats import FormatType, avro, avro_schemas, csv, format_named, orc, parquet
from millstream.formats.options import Settings
from millstream.types.factory import TypeInformation

_BULK: dict[str, tuple[type[BulkFormat], tuple[ConfigOption[Any], ...]]] = {
    "parquet": (ParquetFiles, parquet.OPTIONS),
    "orc": (OrcFiles, orc.OPTIONS),
    "avro": (AvroFiles, avro.FILE_OPTIONS),
}


def create_file_format(
    name: str, schema: TypeInformation | pa.Schema | FormatType, options: Mapping[str, Any] | None = None
) -> FileFormat:
    """Return the reader of a format; `options` are those of the format, and "on-error"."""
    options_by_key = dict(options or {})
    if name in _BULK:
        format_class, known_options = _BULK[name]
        return format_class(schema, Settings(name, known_options, options_by_key).on_error())
    line_format = format_named(name, schema, options_by_key)
    if name == "csv":
        dialect = csv.Dialect(Settings(name, csv.OPTIONS, options_by_key))
        return CsvFiles(line_format, quote=dialect.quote, escape=dialect.escape, comments=dialect.comments)
    return StreamFormat.lines_of(line_format)


def create_encoder(
    name: str, schema: TypeInformation | pa.Schema | FormatType, options: Mapping[str, Any] | None = None
) -> Encoder | BulkWriterFactory:
    """Return the writer of a format: a bulk writer factory, or an encoder of lines."""
    options_by_key = dict(options or {})
    if name not in _BULK:
        return FormatEncoder(format_named(name, schema, options_by_key))
    settings = Settings(name, _BULK[name][1], options_by_key)
    settings.without_effect(parquet.UTC_TIMEZONE)
    data_type = FormatType.of(schema)
    if name == "avro":
        return AvroWriterFactory(avro_schemas.record_schema(data_type), data_type, codec=settings.get(avro.CODEC))
    if name == "orc":
        return OrcWriterFactory(data_type, compression=settings.get(orc.COMPRESSION))
    return ParquetWriterFactory(
        data_type, compression=settings.get(parquet.COMPRESSION), block_size=settings.get(parquet.BLOCK_SIZE)
    )
