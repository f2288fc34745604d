"""Tables in files, written by columns: the same bytes in the same folders as row by row.

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


def _moment(rng: random.Random, digits: int) -> datetime.datetime:
    near = rng.choice((1969, 2024, *((1, 9999) if digits <= 6 else ())))
    unit = max(rng.choice((10**6, 10**5, 10**3, 1)), 10 ** (6 - min(digits, 6)))
    micros = rng.randrange(365 * 86_400 * 10**6) // unit * unit
    first = datetime.datetime.combine(datetime.date(near, 1, 1), datetime.time())
    return first + datetime.timedelta(microseconds=micros)


def _value(kind: t.DataType, rng: random.Random) -> Any:
    match kind:
        case t.VarCharType():
            some = "".join(rng.choices('ab,"\n\\ é😀-0', k=rng.randrange(30)))
            return rng.choice((rng.choice(_TEXTS), some))
        case t.BooleanType():
            return rng.random() < 0.5
        case t.IntegerType():
            return rng.choice((0, -1, 2 ** (kind.bits - 1) - 1, -(2 ** (kind.bits - 1)), rng.randrange(-100, 100)))
        case t.FloatType() | t.DoubleType():
            return rng.choice(
                (rng.choice(_FLOATS), rng.uniform(-1e4, 1e4), rng.uniform(-1, 1) * 10 ** rng.randrange(-9, 30))
            )
        case t.DecimalType():
            digits = rng.randrange(-(10 ** rng.randrange(1, kind.precision + 1)) + 1, 10**kind.precision)
            return rng.choice((Decimal(0), Decimal(1), Decimal(digits))).scaleb(-kind.scale)
        case t.VarBinaryType():
            return rng.randbytes(rng.randrange(24))
        case t.DateType():
            return _moment(rng, 0).date()
        case t.TimeType():
            return _moment(rng, 3).time()
        case t.TimestampType():
            return _moment(rng, kind.precision)
        case t.LocalZonedTimestampType():
            return _moment(rng, kind.precision).replace(tzinfo=datetime.UTC)
    return [_value(kind.element, rng) for _ in range(3)]  # type: ignore[attr-defined]


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


def _table(kinds: list[t.DataType], rng: random.Random, count: int = 60) -> tuple[t.RowType, pa.Array]:
    row = t.row_of([f"c{i}" for i in range(len(kinds))], kinds, null=False)
    nulls = rng.choice((0.0, 0.2, 1.0))
    columns = [
        pa.array(
            [None if rng.random() < nulls else _value(kind, rng) for _ in range(count)], create_named_arrow_type(kind)
        )
        for kind in kinds
    ]
    return row, combine_columns(columns, None, row, count).slice(rng.randrange(3))


@pytest.mark.parametrize("seed", range(90))
def test_columns_are_written_as_rows_are(seed: int) -> None:
    """Whatever the types, the values and the dialect: sign by sign."""
    rng = random.Random(seed)
    kinds = rng.choices(_SINGLE, k=rng.randrange(1, 7))
    row, array = _table(kinds, rng)
    names = rng.sample(row.names, rng.randrange(1, len(kinds) + 1))
    chosen = t.row_of(names, [row.types[row.names.index(name)] for name in names], null=False)
    form, columns = (
        format_named("csv", create_arrow_schema(chosen), _DIALECTS[seed % len(_DIALECTS)]),
        Columns(row, names),
    )
    encoder, by_rows, by_columns = ColumnsEncoder(form, columns, row), io.BytesIO(), io.BytesIO()
    encoder.encode_many(create_row_type_info(row).from_arrow(array), by_rows)
    encoder.encode_many(array, by_columns)
    assert by_columns.getvalue() == by_rows.getvalue()
    assert form.encode_lines(columns.project_arrays(array), b"\n") is not None  # it was not the other way again


def test_what_columns_cannot_tell_is_written_row_by_row() -> None:
    """Types that only the row's writer knows."""
    row, array = _table([t.INT, t.ArrayType(t.STRING)], random.Random(1))
    form, columns = format_named("csv", create_arrow_schema(row), {}), Columns(row, row.names)
    assert form.encode_lines(columns.project_arrays(array), b"\n") is None
    by_rows, by_columns = io.BytesIO(), io.BytesIO()
    encoder = ColumnsEncoder(form, columns, row)
    encoder.encode_many(create_row_type_info(row).from_arrow(array), by_rows)
    encoder.encode_many(array, by_columns)
    assert by_columns.getvalue() == by_rows.getvalue()


@pytest.mark.parametrize("kind", [t.TimestampType(3), t.TimestampType(6), t.DATE], ids=str)
@pytest.mark.parametrize("day", [-719_163, 2_932_897])
def test_a_day_that_python_has_no_word_for_is_not_written(kind: t.DataType, day: int) -> None:
    """The last before, and the first behind; those between have one."""
    row = t.row_of(["c"], [kind], null=False)
    form, arrow = format_named("csv", create_arrow_schema(row), {}), create_named_arrow_type(kind)
    unit = 1 if kind == t.DATE else 86_400 * (1000 if arrow.unit == "ms" else 1_000_000)
    bound = day * unit if day > 0 else (day + 1) * unit - 1
    numbers = pa.array([bound, bound - 1 if day > 0 else bound + 1], pa.int32() if kind == t.DATE else pa.int64())
    column = numbers.view(arrow)
    assert form.encode_lines([column], b"\n") is None
    assert form.encode_lines([column[1:]], b"\n") is not None


@pytest.mark.parametrize("seed", range(40))
def test_rows_are_in_the_same_folders_by_columns(seed: int) -> None:
    """Folders in the order of their first rows, rows in theirs; equal paths are one folder."""
    rng = random.Random(seed)
    kinds = [t.BIGINT, *rng.choices(_SINGLE, k=rng.randrange(1, 4))]
    row, array = _table(kinds, rng)
    small = array.take(pa.array(rng.choices(range(8), k=len(array))))
    rows, context = create_row_type_info(row).from_arrow(small), BucketContext(None, 0)
    assigner = PartitionBuckets(row, row.names[1:], "nothing")
    expected: dict[str, list[Any]] = {}
    for each in rows:
        expected.setdefault(assigner.get_bucket_id(each, context), []).append(str(each))
    found = [(name, [str(each) for each in create_row_type_info(row).from_arrow(part)])
             for name, part in assigner.buckets_of(small, context)]  # fmt: skip
    assert found == list(expected.items())
