# ruff: noqa: E501, DTZ001
"""For any bytes, a format returns records or errors. It reads what it wrote, and batch sizes do not change results."""

import datetime
import math
from decimal import Decimal

import pyarrow as pa
import pytest
from format_cases import CHANGES, EVERYTHING, schema_of
from hypothesis import example, given, settings
from hypothesis import strategies as st
from samples import SAMPLES

from millstream.formats import format_named
from millstream.types.row import KINDS, Row

FLAT = "b BOOLEAN, t TINYINT, s SMALLINT, i INT, l BIGINT, f FLOAT, d DOUBLE, c STRING"
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
DOUBLES = st.floats(allow_nan=False)
#: Bytes that look like records, and may be valid.
PIECES = st.sampled_from(
    ['{', '}', '"v"', ':', ',', '1', '"a"', 'null', 'true', '[', ']', '"', "'", '\\', '\n', '-', '1.5', '1e9', ' ', '\\u00',
     'NaN', '99999999999', '"op":"c"', '"after":{', '"data":[{', '"type":"INSERT"', '"id":1', '#', ';', '2020-01-01', '\0']
)  # fmt: skip
NEARLY = st.lists(PIECES, max_size=12).map(lambda parts: "".join(parts).encode())


@pytest.fixture(scope="module")
def formats(tmp_path_factory):
    folder = tmp_path_factory.mktemp("formats")
    made = {name: sample.format(folder) for name, sample in SAMPLES.items()}
    made["json wide"] = format_named("json", schema_of(EVERYTHING + ", a ARRAY<INT>, m MAP<STRING,INT>, r ROW<x INT>"))
    made["csv wide"] = format_named("csv", schema_of(EVERYTHING), {"null-literal": "null", "escape-character": "\\"})
    made["avro json"] = format_named("avro", schema_of(EVERYTHING), {"encoding": "json"})
    made["json ignoring"] = format_named("json", schema_of(EVERYTHING), {"ignore-parse-errors": "true"})
    return made


@settings(max_examples=120)
@given(records=st.lists(st.one_of(st.binary(max_size=40), NEARLY, st.none()), max_size=6))
def test_any_bytes_give_records_or_errors(formats, records):
    for name, made in formats.items():
        decoded = made.decode(records)
        rows = decoded.rows(made.type_info)
        made.type_info.to_arrow(rows)
        bad = {error.index for error in decoded.errors}
        good = {decoded.origin_of(at) for at in range(len(rows))}
        assert not bad & good, name
        assert bad | good <= set(range(len(records)))
        assert all(error.data == records[error.index] and error.reason for error in decoded.errors)


@settings(max_examples=80)
@given(
    records=st.lists(
        st.one_of(NEARLY, st.sampled_from([b'{"v":1,"c":"x"}', b'{"c":"\xc3\xa9"}', b'{"v":2}'])),
        min_size=2,
        max_size=8,
    )
)
def test_batched_json_equals_json_row_by_row(records):
    made = format_named("json", schema_of("v INT, c STRING, d DOUBLE, b BOOLEAN, ts TIMESTAMP(3)"))
    assert_same(made, records)


@settings(max_examples=80)
@given(
    records=st.lists(
        st.lists(st.one_of(st.integers(), DOUBLES, TEXT, st.sampled_from(["", " ", "true", "NaN", "0x1", "null", "inf", "1d", '"a"', '""', '"null"', '"a""b"', '"a,b"', '"1"', ' "a"', '"a"b', 'a"b'])), min_size=2, max_size=4)
        .map(lambda fields: ",".join(map(str, fields)).encode()),
        min_size=2, max_size=6,
    )
)  # fmt: skip
@pytest.mark.parametrize("schema", ["i INT, c STRING", "d DOUBLE, b BOOLEAN, c STRING", "c STRING, f FLOAT, da DATE"])
def test_batched_csv_equals_csv_row_by_row(schema, records):
    for options in ({}, {"null-literal": "null"}, {"ignore-parse-errors": "true"}):
        assert_same(format_named("csv", schema_of(schema), options), records)


def assert_same(made, records):
    together = made.decode(records)
    single = [made.decode([record]) for record in records]
    rows = [row for each in single for row in made.type_info.conform(each.rows(made.type_info))]
    assert str(made.type_info.conform(together.rows(made.type_info))) == str(rows)
    assert [error.index for error in together.errors] == [at for at, each in enumerate(single) if each.errors]


MOMENTS = st.datetimes(datetime.datetime(1, 1, 2), datetime.datetime(9999, 12, 30)).map(
    lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)
)
ROWS = st.builds(
    lambda **fields: Row(**fields),
    b=st.none() | st.booleans(),
    t=st.none() | st.integers(-128, 127),
    l=st.none() | st.integers(-(1 << 63), (1 << 63) - 1),
    f=st.none() | st.floats(allow_nan=False, width=32),
    d=st.none() | DOUBLES,
    c=TEXT,
    n=st.none() | st.decimals(-99999999, 99999999, places=2),
    da=st.none() | st.dates(datetime.date(1, 1, 1)),
    ti=st.none() | st.times().map(lambda time: time.replace(microsecond=0)),
    ts=st.none() | MOMENTS,
    y=st.none() | st.binary(min_size=1),
)


@settings(max_examples=60)
@given(rows=st.lists(ROWS, min_size=1, max_size=4))
@pytest.mark.parametrize("name", ["json", "json iso", "csv", "avro", "avro json"])
def test_written_values_are_read_back(name, rows):
    options = {
        "json iso": {"timestamp-format.standard": "ISO-8601"},
        "csv": {"null-literal": "\\N"},
        "avro json": {"encoding": "json"},
    }
    made = format_named(name.split()[0], schema_of(EVERYTHING), options.get(name, {}))
    if name == "csv" and any(row.c in ("\\N",) for row in rows):
        return
    decoded = made.decode(made.encode(rows))
    assert not decoded.errors
    assert made.type_info.conform(decoded.rows(made.type_info)) == rows


@settings(max_examples=200)
@example(10, "T", "2023-11-14 23:59:40.123")
@example(0, "0", "2023-11-14 23:59:40.123")
@given(
    place=st.integers(0, 22),
    sign=st.sampled_from("0123459:/-. TxZ"),
    whole=st.sampled_from(["2023-11-14 23:59:40.123", "1999-12-31 00:00:00"]),
)
def test_batched_timestamps_equal_timestamps_row_by_row(place, sign, whole):
    made = format_named("json", schema_of("ts TIMESTAMP(3)"))
    texts = [whole, whole[:place] + sign + whole[place + 1 :], whole]
    records = [b'{"ts":"%s"}' % text.encode() for text in texts]
    together = made.decode(records)
    singly = [made.decode([record]) for record in records]
    assert together.rows(made.type_info) == [row for each in singly for row in each.rows(made.type_info)]
    assert [error.data for error in together.errors] == [error.data for each in singly for error in each.errors]


@settings(max_examples=60)
@given(
    rows=st.lists(
        st.builds(
            lambda kind, number, name: Row.of_kind(kind, id=number, name=name, w=None),
            st.sampled_from(KINDS), st.integers(-(1 << 31), (1 << 31) - 1), st.none() | TEXT,
        )
    )
)  # fmt: skip
@pytest.mark.parametrize("name", ["debezium-json", "canal-json", "maxwell-json"])
def test_written_changes_are_read_as_inserts_and_deletes(name, rows):
    made = format_named(name, schema_of(CHANGES))
    found = made.decode(made.encode(rows)).values
    folded = {KINDS[0]: KINDS[0], KINDS[2]: KINDS[0], KINDS[1]: KINDS[3], KINDS[3]: KINDS[3]}
    assert found == [Row.of_kind(folded[row.get_row_kind()], **row.as_dict()) for row in rows]


@settings(max_examples=60)
@given(value=st.one_of(DOUBLES, st.floats(allow_nan=False, width=32)))
@example(3.4028234663852886e38)
def test_numbers_are_written_short_and_exact(value):
    for kind, schema in (("FLOAT", pa.float32()), ("DOUBLE", pa.float64())):
        made = format_named("json", pa.schema([("v", schema)]))
        (exact,) = made.type_info.conform([Row(v=value)])
        if math.isinf(exact.v):
            continue
        (found,) = made.type_info.conform(made.decode(made.encode([exact])).values)
        assert found == exact, kind


def test_nested_garbage_does_not_exhaust_the_stack():
    made = format_named("json", schema_of("v STRING"))
    (bad,) = made.decode([b'{"v":' * 100_000]).errors
    assert bad.index == 0
    assert Decimal(1) == 1
