"""Formats by name.

Promises: formats have the names of Flink SQL (`'format' = '...'`); an unknown name is refused with the nearest one.
Does not know: connectors, tables. Parquet and ORC are formats of files, which `connectors.files` reads."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from millstream.config.configuration import ConfigOption
from millstream.formats import avro, avro_confluent, canal, csv, debezium, json, maxwell, orc, parquet, protobuf, raw
from millstream.formats.changelog import ChangelogFormat
from millstream.formats.contract import BadFormat, Format
from millstream.formats.format_types import FormatType
from millstream.formats.options import ON_ERROR
from millstream.types.factory import TypeInformation

_FORMATS: dict[str, tuple[Callable[[FormatType, Mapping[str, Any]], Format], tuple[ConfigOption[Any], ...]]] = {
    "json": (json.JsonFormat, json.OPTIONS),
    "csv": (csv.CsvFormat, csv.OPTIONS),
    "raw": (raw.RawFormat, raw.OPTIONS),
    "avro": (avro.AvroFormat, avro.OPTIONS),
    "avro-confluent": (avro_confluent.AvroConfluentFormat, avro_confluent.OPTIONS),
    "debezium-json": (debezium.DebeziumJson, debezium.OPTIONS),
    "canal-json": (canal.CanalJson, canal.OPTIONS),
    "maxwell-json": (maxwell.MaxwellJson, maxwell.OPTIONS),
    "protobuf": (protobuf.ProtobufFormat, protobuf.OPTIONS),
}
_CHANGELOGS: dict[str, type[ChangelogFormat]] = {
    "debezium-json": debezium.DebeziumJson,
    "canal-json": canal.CanalJson,
    "maxwell-json": maxwell.MaxwellJson,
}
_FILES: dict[str, tuple[ConfigOption[Any], ...]] = {"parquet": parquet.OPTIONS, "orc": orc.OPTIONS}


def format_named(
    name: str,
    schema: TypeInformation | pa.Schema | FormatType,
    options: Mapping[str, Any] | None = None,
    metadata: Sequence[str] = (),
) -> Format:
    """Create the format of a name for records of a type.

    `options` are those of the format, with its name before them ("json.ignore-parse-errors") or without, and
    "on-error": "fail" (the default), "skip" or "dead-letter". `metadata` names metadata fields of changelog
    formats, such as "source.table"; they follow the fields of the type."""
    if name not in _FORMATS:
        message = f"there is no format {name!r} for messages"
        if name in _FILES:
            raise BadFormat(message, hint=f"{name} is a format of whole files; use it with the filesystem connector")
        near = difflib.get_close_matches(name, _FORMATS, 1)
        raise BadFormat(message, hint=f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(_FORMATS)}")
    if metadata:
        if name not in _CHANGELOGS:
            message = f"messages of {name} have no metadata"
            raise BadFormat(message, hint=f"remove the metadata columns {', '.join(metadata)}")
        return _CHANGELOGS[name](FormatType.of(schema), dict(options or {}), metadata)
    return _FORMATS[name][0](FormatType.of(schema), dict(options or {}))


def format_metadata(name: str) -> dict[str, TypeInformation]:
    """Return the metadata fields of a format, with their types."""
    fields = _CHANGELOGS[name].readable if name in _CHANGELOGS else {}
    return {key: field.data_type.type_info() for key, field in fields.items()}


def format_options(name: str) -> tuple[ConfigOption[Any], ...]:
    """Return the options of a format; their keys have no prefix."""
    if name in _FILES:
        return (*_FILES[name], ON_ERROR)
    if name not in _FORMATS:
        message = f"there is no format {name!r}"
        raise BadFormat(message)
    of_files = avro.FILE_OPTIONS if name == "avro" else ()
    return (*_FORMATS[name][1], *of_files, ON_ERROR)


def format_names() -> list[str]:
    """Return the names of all formats."""
    return sorted((*_FORMATS, *_FILES))
