"""Formats read and write what the real Flink reads and writes; record.py asked it."""

import datetime
import json
from decimal import Decimal
from pathlib import Path

import numpy
import pytest
from format_cases import AVRO_ROWS, AVRO_SCHEMA, DECODED, ENCODED, schema_of

from millstream.formats import UnencodableRecord, format_named
from millstream.times import Instant
from millstream.types.row import KINDS, Row

GOLDEN = Path(__file__).parents[1] / "golden" / "formats"


def golden(name):
    return json.loads((GOLDEN / name).read_text())


def plain(value):
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return ["float", repr(value)]
    if isinstance(value, bytes):
        return ["bytes", value.hex()]
    if isinstance(value, datetime.datetime):
        return ["timestamp", f"{value.isoformat(timespec='milliseconds')}000000"]
    if isinstance(value, Instant):
        return ["instant", value.seconds, value.nanos // 1_000_000 * 1_000_000]
    if isinstance(value, datetime.time):
        return ["time", f"{value.isoformat(timespec='milliseconds')}000000"]
    if isinstance(value, datetime.date):
        return ["date", value.isoformat()]
    if isinstance(value, Decimal):
        return ["decimal", str(value)]
    if isinstance(value, Row):
        return ["row", *map(plain, value)]
    if isinstance(value, dict):
        return ["map", sorted([plain(key), plain(item)] for key, item in value.items())]
    return ["array", *map(plain, value)]


def to_millis(value, narrow=False):
    """Flink's rows hold more digits than the declared type; ours hold as many as it says."""
    if isinstance(value, list):
        if value[:1] == ["float"] and narrow:
            return ["float", str(numpy.float32(value[1]))]
        if value[:1] == ["timestamp"] or value[:1] == ["time"]:
            return [value[0], value[1][:-6] + "000000"]
        if value[:1] == ["instant"]:
            return [*value[:2], value[2] // 1_000_000 * 1_000_000]
        return [to_millis(item, narrow) for item in value]
    return value


#: Intended differences from Flink.
DIFFERENT = {
    # Flink's parser stops after as many members as there are fields: which member a repeated one hides depends on its
    # position
    b'{"v":1,"v":2}': "of a repeated member the last counts",
    b'{"v":1,"v":2,"w":"a"}': "of a repeated member the last counts",
    b'{"v":1,"w":"a","v":2}': "of a repeated member the last counts",
    b'{"w":"a","w":null,"v":1}': "of a repeated member the last counts",
    b'[{"v":1},{"v":2}': "an array without its end is no record",
}


@pytest.mark.parametrize("case", DECODED, ids=lambda case: case.name)
@pytest.mark.parametrize("together", ["alone", "twice", "all"])
def test_records_are_read_as_flink_reads_them(case, together):
    made = format_named(case.format, schema_of(case.schema), case.options)
    expected = golden(f"{case.format}.json")[case.name]
    found = []
    copies = 2 if together == "twice" else 1  # two equal records are read by a fast path, one record is not
    batches = [case.records] if together == "all" else [[record] * copies for record in case.records]
    for batch in batches:
        decoded = made.decode(batch)
        answers = [[] for _ in batch]
        for index, row in enumerate(made.type_info.conform(decoded.rows(made.type_info))):
            answers[decoded.origin_of(index)].append([str(row.get_row_kind()), *map(plain, row)])
        for bad in decoded.errors:
            answers[bad.index] = "error"
        assert answers[0] == answers[-1] or together == "all"
        found += answers if together == "all" else answers[:1]
    wrong = []
    for record, ours, theirs in zip(case.records, found, expected, strict=True):
        narrow = "FLOAT" in case.schema
        theirs = "error" if isinstance(theirs, dict) else to_millis(theirs, narrow)
        ours = to_millis(ours, narrow)
        if ours == "error" and case.options.get("ignore-parse-errors") and theirs == []:
            continue  # millstream counts the records that Flink drops silently
        if record in DIFFERENT:
            continue
        if ours != theirs:
            wrong.append((record, ours, theirs))
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize("index", range(len(ENCODED)))
def test_records_are_written_as_flink_writes_them(index):
    name, schema, options, texts = ENCODED[index]
    standard = {key: value for key, value in options.items() if key.startswith("timestamp")}
    reader = format_named("json", schema_of(schema), standard)
    writer = format_named(name, schema_of(schema), options)
    found = []
    for text in texts:
        for kind in KINDS if writer.changelog else KINDS[:1]:
            rows = reader.type_info.conform(reader.decode([text.encode()]).values)
            for row in rows:
                row.set_row_kind(kind)
            try:
                found += [data.decode() for data in writer.encode(rows)] or ["error"]
            except UnencodableRecord:
                found.append("error")
    expected = ["error" if isinstance(text, dict) else text for text in golden("encoded.json")[index]]
    wrong = [pair for pair in zip(found, expected, strict=True) if pair[0] != pair[1]]
    assert not wrong, "\n".join(map(str, wrong))


def test_avro_has_flinks_schema_and_bytes():
    expected = golden("avro.json")
    made = format_named("avro", schema_of(AVRO_SCHEMA))
    assert plain_schema(made.schema) == plain_schema(expected["schema"])
    rows = format_named("json", schema_of(AVRO_SCHEMA)).decode([text.encode() for text in AVRO_ROWS]).values
    assert [data.hex() for data in made.encode(rows)] == expected["rows"]
    assert made.decode([bytes.fromhex(text) for text in expected["rows"]]).values == rows


def plain_schema(schema, space=""):
    """The schema with full names and in one order."""
    if isinstance(schema, list):
        return [plain_schema(each, space) for each in schema]
    if isinstance(schema, dict):
        space = schema.get("namespace", space)
        found = {key: plain_schema(value, space) for key, value in schema.items() if key != "namespace"}
        if schema.get("type") == "record" and "." not in schema["name"]:
            found["name"] = f"{space}.{schema['name']}"
        return found
    return schema
