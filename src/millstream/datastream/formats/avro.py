"""PyFlink's `datastream.formats.avro`: Avro schemas, messages and files.

Promises: a generic record is a dict; rows have the type that the schema describes.
Does not know: how Avro is read; `millstream.formats` does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from millstream.connector.serialization_schema import BulkWriterFactory, InputFormat
from millstream.connectors.files import AvroFiles, AvroRecords, AvroWriterFactory
from millstream.connectors.files.paths import file_status, list_files, resolve_path
from millstream.connectors.files.ranges import OpenRange
from millstream.datastream.utils import ResultTypeQueryable
from millstream.errors import UserError
from millstream.files.remote import get_file_system
from millstream.formats import FormatDeserializationSchema, FormatSerializationSchema, avro_schemas
from millstream.formats.avro import AvroFormat, parse_schema
from millstream.types.factory import PickledBytesTypeInfo, TypeInformation

__all__ = [
    "AvroBulkWriters",
    "AvroFiles",
    "AvroInputFormat",
    "AvroRowDeserializationSchema",
    "AvroRowSerializationSchema",
    "AvroSchema",
    "GenericRecordAvroTypeInfo",
]

_SPLIT = 64 << 20


class NoJavaClass(UserError):
    """A Java class was named, but millstream runs no Java code of users."""

    hint = "pass avro_schema_string, the schema of the class as JSON"

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"the class {name!r} cannot be loaded: millstream runs no Java code of users")


class AvroSchema:
    """A parsed and checked Avro schema.

    Example:
        >>> text = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
        >>> schema = AvroSchema.parse_string(text)
        >>> print(schema)
        {"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}

    """

    def __init__(self, schema: Any) -> None:
        self.schema = avro_schemas.load_schema(schema)
        parse_schema(self.schema)

    @staticmethod
    def parse_string(json_schema: str) -> AvroSchema:
        """Parse a schema from JSON.

        Args:
            json_schema: The schema.

        """
        return AvroSchema(json_schema)

    @staticmethod
    def parse_file(file_path: str) -> AvroSchema:
        """Parse a schema from a file.

        Args:
            file_path: The path of a file that contains the schema as JSON.

        """
        return AvroSchema(Path(file_path).read_text(encoding="utf-8"))

    def __str__(self) -> str:
        return json.dumps(self.schema, separators=(",", ":"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AvroSchema) and self.schema == other.schema

    def __hash__(self) -> int:
        return hash(str(self))


class GenericRecordAvroTypeInfo(PickledBytesTypeInfo):
    """The type of dicts that an Avro schema describes.

    Example:
        >>> text = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
        >>> schema = AvroSchema.parse_string(text)
        >>> type_info = GenericRecordAvroTypeInfo(schema)

    """

    json_tags = ("AVRO_GENERIC_RECORD",)

    def __init__(self, schema: AvroSchema) -> None:
        super().__init__()
        self.schema = schema

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form of the type."""
        return {"type": self.json_tags[0], "schema": self.schema.schema}

    @classmethod
    def _from_json(cls, description: dict[str, Any]) -> GenericRecordAvroTypeInfo:
        return cls(AvroSchema(description["schema"]))

    def __repr__(self) -> str:
        return "GenericRecordAvroTypeInfo"


class AvroInputFormat(InputFormat, ResultTypeQueryable):
    """Reads Avro files as dicts.

    Example:
        >>> from millstream.datastream import StreamExecutionEnvironment
        >>> text = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
        >>> schema = AvroSchema.parse_string(text)
        >>> input_format = AvroInputFormat("/data/orders.avro", schema)

    """

    def __init__(self, path: str, schema: AvroSchema) -> None:
        self._root = resolve_path(path)
        self._type_info = GenericRecordAvroTypeInfo(schema)
        self._records = AvroRecords(schema.schema, self._type_info)

    def get_produced_type(self) -> TypeInformation:
        """Return the type of the records."""
        return self._type_info

    def create_input_splits(self, min_num_splits: int) -> list[Any]:
        """Split the files into byte ranges."""
        sizes = [(path, file_status(path)[0]) for path in list_files([self._root])]
        step = max(min(_SPLIT, sum(size for _, size in sizes) // max(min_num_splits, 1) + 1), 1 << 16)
        return [(path, at, min(at + step, size), size) for path, size in sizes for at in range(0, size, step)]

    def read(self, split: Any) -> Iterator[Any]:
        """Read the records of a byte range."""
        path, start, end, size = split
        with get_file_system(path).open(path) as stream:
            for records in self._records.read(OpenRange(path, stream, start, end, size), 1000):
                yield from records.values


class AvroBulkWriters:
    """Factories of writers of Avro files, for `FileSink.for_bulk_format`.

    Example:
        >>> from millstream.datastream.connectors.file_system import FileSink
        >>> text = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
        >>> schema = AvroSchema.parse_string(text)
        >>> sink = FileSink.for_bulk_format("/data/orders", AvroBulkWriters.for_generic_record(schema)).build()

    """

    @staticmethod
    def for_generic_record(schema: AvroSchema) -> BulkWriterFactory:
        """Create a factory of writers of dicts, or of rows with the fields of the schema.

        Args:
            schema: The schema of the files.

        """
        return AvroWriterFactory(schema.schema)


class AvroRowDeserializationSchema(FormatDeserializationSchema):
    r"""Deserializes Avro messages to rows.

    Example:
        >>> text = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
        >>> AvroRowDeserializationSchema(avro_schema_string=text).deserialize(b"\x0a")
        Row(id=5)

    """

    def __init__(self, record_class: str | None = None, avro_schema_string: str | None = None) -> None:
        super().__init__(_format(record_class, avro_schema_string))


class AvroRowSerializationSchema(FormatSerializationSchema):
    r"""Serializes rows as Avro messages.

    Example:
        >>> from millstream.common import Row
        >>> text = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
        >>> AvroRowSerializationSchema(avro_schema_string=text).serialize(Row(id=5))
        b'\n'

    """

    def __init__(self, record_class: str | None = None, avro_schema_string: str | None = None) -> None:
        super().__init__(_format(record_class, avro_schema_string))


def _format(record_class: str | None, avro_schema_string: str | None) -> AvroFormat:
    if record_class is None and avro_schema_string is None:
        message = "record_class or avro_schema_string should be specified."
        raise TypeError(message)
    if record_class is not None:
        raise NoJavaClass(record_class)
    schema = AvroSchema(avro_schema_string).schema
    return AvroFormat(avro_schemas.format_type_of(schema), {}, schema)
