"""Tables in files, written by columns: the same bytes in the same directories as row by row.

Promises: seeded random tables, dialects and partitions.
Does not know: jobs, commits."""

from __future__ import annotations

import datetime
import io
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from millstream.connectors.files.buckets import BucketContext
from millstream.formats import format_named
from millstream.sql.columns import combine_columns, create_row_type_info
from millstream.sql.connector.table_formats import Columns, create_arrow_schema, create_named_arrow_type
from millstream.sql.connectors.file_partitions import ColumnsEncoder, PartitionBuckets
from millstream.sql.types import data_types as t

_TEXTS = (
    "", "a", "plain", "x,y", 'say "so"', '"', "line\nline", "\r", " ", "a b", "é→😀", "😀" * 24, "😀" * 25, "a" * 24,
    "a" * 25, "back\\slash", "null", "N/A", "\0", "semi;colon", "a|b", "->", "\u2028", "0", "'q'", "#",
)  # fmt: skip
_FLOATS = (0.0, -0.0, 1.0, 1e7, 9999999.5, 1e-3, 9.99e-4, 1e300, -2.5e-10, float("nan"), float("inf"), -float("inf"))


def _create_timestamp(rng: random.Random, digits: int) -> datetime.datetime:
    near = rng.choice((1969, 2024, *((1, 9999) if digits <= 6 else ())))
    unit = max(rng.choice((10**6, 10**5, 10**3, 1)), 10 ** (6 - min(digits, 6)))
    micros = rng.randrange(365 * 86_400 * 10**6) // unit * unit
    first = datetime.datetime.combine(datetime.date(near, 1, 1), datetime.time())
    return first + datetime.timedelta(microseconds=micros)


def _create_value(data_type: t.DataType, rng: random.Random) -> Any:
    match data_type:
        case t.VarCharType():
            some = "".join(rng.choices('ab,"\n\\ é😀-0', k=rng.randrange(30)))
            return rng.choice((rng.choice(_TEXTS), some))
        case t.BooleanType():
            return rng.random() < 0.5
        case t.IntegerType():
            return rng.choice(
                (0, -1, 2 ** (data_type.bits - 1) - 1, -(2 ** (data_type.bits - 1)), rng.randrange(-100, 100))
            )
        case t.FloatType() | t.DoubleType():
            return rng.choice(
                (rng.choice(_FLOATS), rng.uniform(-1e4, 1e4), rng.uniform(-1, 1) * 10 ** rng.randrange(-9, 30))
            )
        case t.DecimalType():
            digits = rng.randrange(-(10 ** rng.randrange(1, data_type.precision + 1)) + 1, 10**data_type.precision)
            return rng.choice((Decimal(0), Decimal(1), Decimal(digits))).scaleb(-data_type.scale)
        case t.VarBinaryType():
            return rng.randbytes(rng.randrange(24))
        case t.DateType():
            return _create_timestamp(rng, 0).date()
        case t.TimeType():
            return _create_timestamp(rng, 3).time()
        case t.TimestampType():
            return _create_timestamp(rng, data_type.precision)
        case t.LocalZonedTimestampType():
            return _create_timestamp(rng, data_type.precision).replace(tzinfo=datetime.UTC)
    return [_create_value(data_type.element, rng) for _ in range(3)]  # type: ignore[attr-defined]


_SINGLE: tuple[t.DataType, ...] = (
    t.STRING, t.BOOLEAN, t.TINYINT, t.SMALLINT, t.INT, t.BIGINT, t.FLOAT, t.DOUBLE, t.DecimalType(12, 2),
    t.DecimalType(10, 6), t.DecimalType(20, 10), t.DecimalType(5, 0), t.BYTES, t.DATE, t.TimeType(3),
    t.TimestampType(3), t.TimestampType(6), t.LocalZonedTimestampType(3), t.LocalZonedTimestampType(6),
)  # fmt: skip
_DIALECTS: tuple[dict[str, str], ...] = (
    {},
    {"field-delimiter": "|"},
    {"field-delimiter": "\\t", "quote-character": "'"},
    {"field-delimiter": "→", "null-literal": "N/A"},
    {"escape-character": "\\"},
    {"escape-character": "0", "null-literal": '"'},
    {"disable-quote-character": "true", "null-literal": "null"},
    {"quote-character": "a", "escape-character": "a"},
    {"write-bigdecimal-in-scientific-notation": "false"},
)


def _create_table(data_types: list[t.DataType], rng: random.Random, count: int = 60) -> tuple[t.RowType, pa.Array]:
    row = t.row_of([f"c{i}" for i in range(len(data_types))], data_types, null=False)
    nulls = rng.choice((0.0, 0.2, 1.0))
    columns = [
        pa.array(
            [None if rng.random() < nulls else _create_value(data_type, rng) for _ in range(count)],
            create_named_arrow_type(data_type),
        )
        for data_type in data_types
    ]
    return row, combine_columns(columns, None, row, count).slice(rng.randrange(3))


@pytest.mark.parametrize("seed", range(90))
def test_columns_are_written_with_the_bytes_of_rows(seed: int) -> None:
    """The bytes are equal for all types, values and dialects."""
    rng = random.Random(seed)
    data_types = rng.choices(_SINGLE, k=rng.randrange(1, 7))
    row, array = _create_table(data_types, rng)
    names = rng.sample(row.names, rng.randrange(1, len(data_types) + 1))
    projected = t.row_of(names, [row.types[row.names.index(name)] for name in names], null=False)
    csv_format, columns = (
        format_named("csv", create_arrow_schema(projected), _DIALECTS[seed % len(_DIALECTS)]),
        Columns(row, names),
    )
    encoder, by_rows, by_columns = ColumnsEncoder(csv_format, columns, row), io.BytesIO(), io.BytesIO()
    encoder.encode_many(create_row_type_info(row).from_arrow(array), by_rows)
    encoder.encode_many(array, by_columns)
    assert by_columns.getvalue() == by_rows.getvalue()
    assert (
        csv_format.encode_lines(columns.project_arrays(array), b"\n") is not None
    )  # the lines were written by columns


def test_types_that_columns_do_not_support_are_written_row_by_row() -> None:
    """Some types are supported only by the writer of rows."""
    row, array = _create_table([t.INT, t.ArrayType(t.STRING)], random.Random(1))
    csv_format, columns = format_named("csv", create_arrow_schema(row), {}), Columns(row, row.names)
    assert csv_format.encode_lines(columns.project_arrays(array), b"\n") is None
    by_rows, by_columns = io.BytesIO(), io.BytesIO()
    encoder = ColumnsEncoder(csv_format, columns, row)
    encoder.encode_many(create_row_type_info(row).from_arrow(array), by_rows)
    encoder.encode_many(array, by_columns)
    assert by_columns.getvalue() == by_rows.getvalue()


@pytest.mark.parametrize("data_type", [t.TimestampType(3), t.TimestampType(6), t.DATE], ids=str)
@pytest.mark.parametrize("day", [-719_163, 2_932_897])
def test_a_day_that_python_cannot_represent_is_refused(data_type: t.DataType, day: int) -> None:
    """The days are the last one before year 1 and the first one after year 9999."""
    row = t.row_of(["c"], [data_type], null=False)
    csv_format, arrow = format_named("csv", create_arrow_schema(row), {}), create_named_arrow_type(data_type)
    unit = 1 if data_type == t.DATE else 86_400 * (1000 if arrow.unit == "ms" else 1_000_000)
    bound = day * unit if day > 0 else (day + 1) * unit - 1
    numbers = pa.array([bound, bound - 1 if day > 0 else bound + 1], pa.int32() if data_type == t.DATE else pa.int64())
    column = numbers.view(arrow)
    assert csv_format.encode_lines([column], b"\n") is None
    assert csv_format.encode_lines([column[1:]], b"\n") is not None


@pytest.mark.parametrize("seed", range(40))
def test_rows_are_in_the_same_directories_by_columns(seed: int) -> None:
    """Directories have the order of their first rows, and equal paths are one directory."""
    rng = random.Random(seed)
    data_types = [t.BIGINT, *rng.choices(_SINGLE, k=rng.randrange(1, 4))]
    row, array = _create_table(data_types, rng)
    small = array.take(pa.array(rng.choices(range(8), k=len(array))))
    rows, context = create_row_type_info(row).from_arrow(small), BucketContext(None, 0)
    assigner = PartitionBuckets(row, row.names[1:], "nothing")
    expected: dict[str, list[Any]] = {}
    for row_of_table in rows:
        expected.setdefault(assigner.get_bucket_id(row_of_table, context), []).append(str(row_of_table))
    actual = [(name, [str(row_of_table) for row_of_table in create_row_type_info(row).from_arrow(part)])
             for name, part in assigner.buckets_of(small, context)]  # fmt: skip
    assert actual == list(expected.items())
