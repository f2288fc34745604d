"""Functions have the same results on whole columns and row by row."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from millstream.connector.source import Budget
from millstream.connectors.files.formats import StreamFormat
from millstream.connectors.files.source import FileSource
from millstream.formats import format_named
from millstream.sql.columns import arrow_type
from millstream.sql.evaluation.evaluate import Frame
from millstream.sql.functions import regexes
from millstream.sql.functions.library import get_function
from millstream.sql.types import data_types as t

TEXTS = [
    "",
    "/",
    "a",
    "a/b",
    "//",
    "a//c",
    "&x=1",
    "x=1&y=2",
    "ab&channel_id=5",
    "channel_id=&",
    None,
    "é/ü/&channel_id=é",
]


@pytest.mark.parametrize("group", [0, 1, 2])
@pytest.mark.parametrize("regex", ["(&|^)channel_id=([^&]*)", "(a*)/(b+)?", "((a)b)", "([^/]*)/([^/]*)"])
def test_a_simple_regex_has_the_matches_of_python(regex: str, group: int) -> None:
    expected = [None if text is None else re.search(regex, text) for text in TEXTS]
    named = regexes.name_group(regex, group)
    if named is not None:
        matches = pc.struct_field(pc.extract_regex(pa.array(TEXTS), named), [0]).to_pylist()
        assert matches == [None if match is None else match.group(group) for match in expected]


def test_ambiguous_regexes_are_not_evaluated_by_arrow() -> None:
    assert regexes.name_group("(&|^)channel_id=([^&]*)", 2) == "(?:&|^)channel_id=(?P<match>[^&]*)"
    for doubtful in ("(a)?b", "a|(b)", "((a)|b)c", "(.)", r"(\d+)", "(a)$", "(?:a)(b)", "(a)*", "(a", "a**", "(a)|b"):
        assert regexes.name_group(doubtful, 1 if doubtful != "((a)|b)c" else 2) is None, doubtful


def apply(name: str, column: list[Any], data_type: t.DataType, *constants: Any) -> tuple[list[Any], list[Any]]:
    """Return the results of a function for a column, and for each row alone."""
    data_types = [data_type, *(t.INT if isinstance(value, int) else t.STRING for value in constants)]
    constant_scalars = [pa.scalar(value, arrow_type(k)) for value, k in zip(constants, data_types[1:], strict=True)]
    evaluate = get_function(name).evaluate
    array = pa.array(column, arrow_type(data_type))
    by_column = evaluate(
        Frame([], len(column), zone="Asia/Kathmandu"), [array, *constant_scalars], data_types, t.STRING
    )
    by_row = [
        evaluate(Frame([], 1, zone="Asia/Kathmandu"), [value, *constant_scalars], data_types, t.STRING).as_py()
        for value in array
    ]
    return by_column.to_pylist(), by_row


@pytest.mark.parametrize("index", [-1, 0, 1, 2, 9])
@pytest.mark.parametrize("separator", ["/", "//", "", "é"])
def test_columns_are_split_like_single_texts(separator: str, index: int) -> None:
    by_column, by_row = apply("SPLIT_INDEX", TEXTS, t.STRING, separator, index)
    assert by_column == by_row


@pytest.mark.parametrize("pattern", ["yyyy-MM-dd", "HH:mm", "hh a", "ss", "SSS", "'day' d", "D"])
@pytest.mark.parametrize("data_type", [t.TimestampType(3), t.LocalZonedTimestampType(3)])
def test_columns_are_formatted_like_single_timestamps(data_type: t.DataType, pattern: str) -> None:
    zone = datetime.UTC if isinstance(data_type, t.LocalZonedTimestampType) else None
    first = datetime.datetime(1969, 12, 31, 23, 50, 59, 999000, tzinfo=zone)
    moments = [first + datetime.timedelta(milliseconds=value * 250) for value in range(200)]
    old = datetime.datetime(1880, 1, 1, 12, 30, 15, tzinfo=zone)
    by_column, by_row = apply("DATE_FORMAT", [*moments, None, old, *moments], data_type, pattern)
    assert by_column == by_row


SCHEMA = pa.schema(
    [("n", pa.int32()), ("r", pa.struct([("s", pa.string()), ("at", pa.timestamp("ms")), ("i", pa.int64())]))]
)
PLAIN = [
    {"n": 1, "r": {"s": "a", "at": "2024-01-01 00:00:00.5", "i": 7}},
    {"r": None},
    {"n": None, "r": {}},
    {"n": 3, "r": {"i": None, "s": "b", "unknown": [1]}, "unknown": {"x": 1}},
]


def test_nested_objects_are_decoded_in_batches_as_one_by_one() -> None:
    json_format = format_named("json", SCHEMA, {})
    lines = [json.dumps(value).encode() for value in PLAIN]
    together = json_format._decode_together(lines)  # type: ignore[attr-defined]
    assert together is not None
    assert json_format.type_info.from_arrow(together) == json_format._decode_singly(lines).values  # type: ignore[attr-defined]
    for odd in ({"r": {"s": 5}}, {"r": 5}, {"r": {"at": "2024-01-01T00:00:00"}}):
        mixed = [*lines, json.dumps(odd).encode()]
        decoded, singly = json_format.decode(mixed), json_format._decode_singly(mixed)  # type: ignore[attr-defined]
        assert decoded.rows(json_format.type_info) == singly.rows(json_format.type_info)
        assert [bad.index for bad in decoded.errors] == [bad.index for bad in singly.errors]


def test_files_are_read_in_parallel(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_bytes(b"0123456789abcdef\n" * 200_000)  # at least three splits
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path)).build()
    enumerator = source.create_enumerator(2)
    ends = {"a": 0, "b": 0}
    while not enumerator.finished():
        for part in enumerator.plan(Budget(20_000, 1 << 40, 0)):
            ends[Path(part.start["path"]).name] = part.end
        assert abs(ends["a"] - ends["b"]) <= 2 * 20_000 * 17
