"""Asks the real Flink what its formats make of the cases, and writes its answers to tests/golden/formats.

    python tests/formats/record.py [flink-sql-avro-2.3.0.jar]     # in an environment with apache-flink 2.3 and a Java

Without the jar the answers about Avro stay as they are. The schemas that Flink SQL puts behind 'format' = '...' are
called directly: no cluster, no job."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyflink.java_gateway import get_gateway
from pyflink.util.java_utils import add_jars_to_context_class_loader

sys.path.insert(0, str(Path(__file__).parent))
from format_cases import AVRO_ROWS, AVRO_SCHEMA, DECODED, ENCODED, fields_of

HERE = Path(__file__).parent
GOLDEN = HERE.parent / "golden" / "formats"
JVM: Any = get_gateway().jvm
FLINK = JVM.org.apache.flink
LOADER = JVM.java.lang.Thread.currentThread().getContextClassLoader()
PARSER = FLINK.table.types.logical.utils.LogicalTypeParser
MOMENT = JVM.java.time.format.DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss.SSSSSSSSS")
HOUR = JVM.java.time.format.DateTimeFormatter.ofPattern("HH:mm:ss.SSSSSSSSS")


def row_type(schema: str) -> Any:
    text = ", ".join(f"`{name}` {kind}" for name, kind in fields_of(schema))
    return PARSER.parse(f"ROW<{text}>", LOADER)


class Converter:
    """Rows inside Flink as plain JSON values."""

    def __init__(self, schema: str) -> None:
        self.logical = row_type(schema)
        self.type = FLINK.table.types.utils.TypeConversions.fromLogicalToDataType(self.logical)
        self.info = FLINK.table.runtime.typeutils.InternalTypeInfo.of(self.logical)
        self.converter = FLINK.table.data.conversion.DataStructureConverters.getConverter(self.type)
        self.converter.open(LOADER)

    def plain(self, row: Any) -> list[Any]:
        external = self.converter.toExternal(row)
        kind = external.getKind().shortString()
        return [kind, *(plain(external.getField(index)) for index in range(external.getArity()))]


def plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return ["float", repr(value)]
    if isinstance(value, (bytes, bytearray)):
        return ["bytes", bytes(value).hex()]
    name = value.getClass().getName() if hasattr(value, "getClass") else type(value).__name__
    if name == "java.time.LocalDateTime":
        return ["timestamp", value.format(MOMENT)]
    if name == "java.time.Instant":
        return ["instant", value.getEpochSecond(), value.getNano()]
    if name == "java.time.LocalTime":
        return ["time", value.format(HOUR)]
    if name == "java.time.LocalDate":
        return ["date", value.toString()]
    if name == "java.math.BigDecimal" or type(value).__name__ == "Decimal":
        return ["decimal", str(value)]
    if name == "org.apache.flink.types.Row":
        return ["row", *(plain(value.getField(index)) for index in range(value.getArity()))]
    if type(value).__name__ == "JavaMap":
        return ["map", sorted([plain(key), plain(value[key])] for key in value)]
    return ["array", *map(plain, value)]


def timestamp_format(options: dict[str, str]) -> Any:
    formats = FLINK.formats.common.TimestampFormat
    return formats.ISO_8601 if options.get("timestamp-format.standard") == "ISO-8601" else formats.SQL


def is_true(options: dict[str, str], key: str) -> bool:
    return options.get(key) == "true"


def decoder(case: Any, types: Converter) -> Any:
    options, ignoring = case.options, is_true(case.options, "ignore-parse-errors")
    formats = FLINK.formats.json
    if case.format == "json":
        return formats.JsonParserRowDataDeserializationSchema(
            types.logical, types.info, is_true(options, "fail-on-missing-field"), ignoring, timestamp_format(options)
        )
    if case.format == "csv":
        builder = FLINK.formats.csv.CsvRowDataDeserializationSchema.Builder(types.logical, types.info)
        return csv_options(builder.setIgnoreParseErrors(ignoring), options, reading=True).build()
    if case.format == "debezium-json":
        return formats.debezium.DebeziumJsonDeserializationSchema(
            types.type, JVM.java.util.ArrayList(), types.info, is_true(options, "schema-include"), ignoring,
            timestamp_format(options)
        )  # fmt: skip
    if case.format == "canal-json":
        builder = formats.canal.CanalJsonDeserializationSchema.builder(
            types.type, JVM.java.util.ArrayList(), types.info
        )
        builder = builder.setIgnoreParseErrors(ignoring).setTimestampFormat(timestamp_format(options))
        builder = builder.setDatabase(options.get("database.include")).setTable(options.get("table.include"))
        return builder.build()
    return formats.maxwell.MaxwellJsonDeserializationSchema(
        types.type, JVM.java.util.ArrayList(), types.info, ignoring, timestamp_format(options)
    )


def csv_options(builder: Any, options: dict[str, str], reading: bool) -> Any:
    char = lambda key: options[key][0]  # noqa: E731
    if "field-delimiter" in options:
        builder = builder.setFieldDelimiter(char("field-delimiter"))
    if "quote-character" in options:
        builder = builder.setQuoteCharacter(char("quote-character"))
    if is_true(options, "disable-quote-character"):
        builder = builder.disableQuoteCharacter()
    if "escape-character" in options:
        builder = builder.setEscapeCharacter(char("escape-character"))
    if "array-element-delimiter" in options:
        builder = builder.setArrayElementDelimiter(options["array-element-delimiter"])
    if "null-literal" in options:
        builder = builder.setNullLiteral(options["null-literal"])
    if reading and is_true(options, "allow-comments"):
        builder = builder.setAllowComments(True)
    return builder


def encoder(name: str, types: Converter, options: dict[str, str]) -> Any:
    if name == "csv":
        return csv_options(
            FLINK.formats.csv.CsvRowDataSerializationSchema.Builder(types.logical), options, False
        ).build()
    mode = FLINK.formats.json.JsonFormatOptions.MapNullKeyMode.FAIL
    plain_number, ignoring = (
        is_true(options, "encode.decimal-as-plain-number"),
        is_true(options, "encode.ignore-null-fields"),
    )
    arguments = (types.logical, timestamp_format(options), mode, "null", plain_number, ignoring)
    formats = FLINK.formats.json
    makers = {
        "json": formats.JsonRowDataSerializationSchema,
        "debezium-json": formats.debezium.DebeziumJsonSerializationSchema,
        "canal-json": formats.canal.CanalJsonSerializationSchema,
        "maxwell-json": formats.maxwell.MaxwellJsonSerializationSchema,
    }
    return makers[name](*arguments)


def opened(schema: Any) -> Any:
    schema.open(None)
    return schema


def decoded(case: Any) -> list[Any]:
    types = Converter(case.schema)
    schema = opened(decoder(case, types))
    answers: list[Any] = []
    for record in case.records:
        found = JVM.java.util.ArrayList()
        collector = FLINK.api.common.functions.util.ListCollector(found)
        try:
            schema.deserialize(record, collector)
            answers.append([types.plain(row) for row in found])
        except Exception as problem:
            java = getattr(problem, "java_exception", None)
            if java is None:
                raise
            cause = java.getCause()
            answers.append({"error": (cause or java).toString().splitlines()[0][:160]})
    return answers


def encoded(name: str, schema: str, options: dict[str, str], rows: tuple[str, ...]) -> list[Any]:
    types = Converter(schema)
    reader = opened(
        FLINK.formats.json.JsonParserRowDataDeserializationSchema(
            types.logical, types.info, False, False, timestamp_format(options)
        )
    )
    writer = opened(encoder(name, types, options))
    changes = [("+I", 0)] if name in ("json", "csv") else [("+I", 0), ("-U", 1), ("+U", 2), ("-D", 3)]
    answers: list[Any] = []
    for text in rows:
        for _, kind in changes:
            try:
                row = reader.deserialize(text.encode())
                row.setRowKind(FLINK.types.RowKind.fromByteValue(kind))
                answers.append(bytes(writer.serialize(row)).decode())
            except Exception as problem:
                java = getattr(problem, "java_exception", None)
                if java is None:
                    raise
                answers.append({"error": java.toString().splitlines()[0][:160]})
    return answers


def avro(jar: str) -> dict[str, Any]:
    """The schema that Flink derives from a type, and the bytes it writes for rows."""
    add_jars_to_context_class_loader([Path(jar).resolve().as_uri()])
    types = Converter(AVRO_SCHEMA)
    reader = opened(
        FLINK.formats.json.JsonParserRowDataDeserializationSchema(
            types.logical, types.info, False, False, FLINK.formats.common.TimestampFormat.SQL
        )
    )
    writer = opened(FLINK.formats.avro.AvroRowDataSerializationSchema(types.logical.copy(False)))
    schema = FLINK.formats.avro.typeutils.AvroSchemaConverter.convertToSchema(types.logical.copy(False))
    rows = [bytes(writer.serialize(reader.deserialize(text.encode()))).hex() for text in AVRO_ROWS]
    return {"schema": json.loads(schema.toString()), "rows": rows}


def main() -> None:
    JVM.java.util.TimeZone.setDefault(JVM.java.util.TimeZone.getTimeZone("UTC"))
    files: dict[str, Any] = {}
    for case in DECODED:
        files.setdefault(f"{case.format}.json", {})[case.name] = decoded(case)
    if len(sys.argv) > 1:
        files["avro.json"] = avro(sys.argv[1])
    files["encoded.json"] = [encoded(*each) for each in ENCODED]
    for name, content in files.items():
        (GOLDEN / name).write_text(json.dumps(content, indent=1, ensure_ascii=True) + "\n")
        print(name, "written")


main()
