"""Avro records with the id of their schema, as Confluent's serializers write them.

Promises: a record is decoded with the schema of its writer and converted to the schema of the row type; the schema of
written records is registered once under the subject. An unreachable registry is an external error, not a bad record.
Does not know: brokers; the subject is an option."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from millstream.config.configuration import ConfigOption
from millstream.formats import avro_schemas
from millstream.formats.avro import REFUSED, library, parse_schema
from millstream.formats.avro_names import match_by_position
from millstream.formats.contract import BadFormat, Decoded, Format, UnencodableRecord, decode_each
from millstream.formats.format_types import FormatType
from millstream.formats.options import Settings
from millstream.formats.schema_registry import RegistryRefused, SchemaRegistry

URL = ConfigOption("url", None, "The URLs of the schema registry, separated by commas.", str)
SUBJECT = ConfigOption("subject", None, "The subject under which the schema of written records is registered.", str)
SCHEMA = ConfigOption("schema", None, "The Avro schema of the records. By default it is derived from the type.", str)
CREDENTIALS = ConfigOption(
    "basic-auth.credentials-source",
    None,
    "Where user and password are taken from: USER_INFO (the option basic-auth.user-info) or URL.",
    str,
    choices=("USER_INFO", "URL"),
)
USER_INFO = ConfigOption("basic-auth.user-info", None, "User and password, in the form user:password.", str)
BEARER_SOURCE = ConfigOption(
    "bearer-auth.credentials-source",
    None,
    "Where the bearer token is taken from: STATIC_TOKEN (the option bearer-auth.token).",
    str,
    choices=("STATIC_TOKEN",),
)
BEARER_TOKEN = ConfigOption("bearer-auth.token", None, "The bearer token for the schema registry.", str)
CA_FILE = ConfigOption("ssl.truststore.location", None, "A PEM file with the certificates to trust.", str)
OPTIONS: tuple[ConfigOption[Any], ...] = (
    URL,
    SUBJECT,
    SCHEMA,
    CREDENTIALS,
    USER_INFO,
    BEARER_SOURCE,
    BEARER_TOKEN,
    CA_FILE,
)
_HEAD = struct.Struct(">bI")


class AvroConfluentFormat(Format):
    """The format `avro-confluent`."""

    name = "avro-confluent"

    def __init__(self, data_type: FormatType, options: Mapping[str, Any]) -> None:
        self._options = dict(options)
        settings = Settings(self.name, OPTIONS, options)
        super().__init__(data_type, settings.on_error())
        self._registry = SchemaRegistry(
            settings.require(URL),
            user_info=settings.get(USER_INFO),
            bearer_token=settings.get(BEARER_TOKEN),
            ca_file=settings.get(CA_FILE),
        )
        for source, needed in ((CREDENTIALS, USER_INFO), (BEARER_SOURCE, BEARER_TOKEN)):
            if settings.get(source) in ("USER_INFO", "STATIC_TOKEN"):
                settings.require(needed)
        declared_schema = settings.get(SCHEMA)
        schema = (
            avro_schemas.record_schema(data_type)
            if declared_schema is None
            else avro_schemas.load_schema(declared_schema)
        )
        self._schema = schema
        self._text = json.dumps(schema, separators=(",", ":"))
        self._reader_schema = parse_schema(schema)
        self._subject: str | None = settings.get(SUBJECT)
        self._to_avro, self._from_avro = avro_schemas.to_avro(data_type), avro_schemas.from_avro(data_type)
        # by id: the writer's schema, and ours with its record names as aliases
        self._schemas: dict[int, tuple[Any, Any]] = {}
        self._library = library()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.data_type, self._options)

    def decode(self, records: Sequence[bytes | None]) -> Decoded:
        """Decode records with the schemas of their writers; a record with an unknown schema id is a bad record."""
        refused = (*REFUSED, RegistryRefused, BadFormat, self._library.read.SchemaResolutionError)
        return decode_each(records, self._decode_one, refused)

    def _decode_one(self, data: bytes) -> Any:
        if len(data) < _HEAD.size or data[0] != 0:
            message = "unknown data format: the magic number does not match"
            raise ValueError(message)
        (_, schema_id) = _HEAD.unpack_from(data)
        if schema_id not in self._schemas:
            written = avro_schemas.load_schema(self._registry.schema(schema_id))
            parse_schema(written)  # so that an error shows the names of the writer
            theirs, ours = match_by_position(self._schema, written)
            self._schemas[schema_id] = parse_schema(theirs), parse_schema(ours)
        writer, reader = self._schemas[schema_id]
        stream = io.BytesIO(bytes(data)[_HEAD.size :])
        return self._from_avro(self._library.schemaless_reader(stream, writer, reader))

    def encode(self, values: Sequence[Any]) -> list[bytes]:
        """Encode records; the schema is registered under the subject first, once."""
        if not values:
            return []
        if self._subject is None:
            message = "the format avro-confluent needs the option avro-confluent.subject to write"
            raise BadFormat(message, hint='give the subject, for a topic usually "<topic>-value"')
        head = _HEAD.pack(0, self._registry.register(self._subject, self._text))
        encoded = []
        for value in values:
            stream = io.BytesIO()
            stream.write(head)
            try:
                self._library.schemaless_writer(stream, self._reader_schema, self._to_avro(value))
            except REFUSED as problem:
                raise UnencodableRecord(self.name, value, str(problem) or type(problem).__name__) from None
            encoded.append(stream.getvalue())
        return encoded
