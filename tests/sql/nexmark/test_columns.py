"""What is computed on whole columns equals what is computed row by row."""

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
def test_a_plain_regex_finds_what_python_finds(regex: str, group: int) -> None:
    matches = [None if text is None else re.search(regex, text) for text in TEXTS]
    named = regexes.name_group(regex, group)
    if named is not None:
        found = pc.struct_field(pc.extract_regex(pa.array(TEXTS), named), [0]).to_pylist()
        assert found == [None if match is None else match.group(group) for match in matches]


def test_doubtful_regexes_are_not_plain() -> None:
    assert regexes.name_group("(&|^)channel_id=([^&]*)", 2) == "(?:&|^)channel_id=(?P<match>[^&]*)"
    for doubtful in ("(a)?b", "a|(b)", "((a)|b)c", "(.)", r"(\d+)", "(a)$", "(?:a)(b)", "(a)*", "(a", "a**", "(a)|b"):
        assert regexes.name_group(doubtful, 1 if doubtful != "((a)|b)c" else 2) is None, doubtful


def applied(name: str, column: list[Any], kind: t.DataType, *constants: Any) -> tuple[list[Any], list[Any]]:
    """The results of a function for a column, and for one row after another."""
    kinds = [kind, *(t.INT if isinstance(each, int) else t.STRING for each in constants)]
    rest = [pa.scalar(each, arrow_type(k)) for each, k in zip(constants, kinds[1:], strict=True)]
    evaluate = get_function(name).evaluate
    array = pa.array(column, arrow_type(kind))
    whole = evaluate(Frame([], len(column), zone="Asia/Kathmandu"), [array, *rest], kinds, t.STRING)
    alone = [evaluate(Frame([], 1, zone="Asia/Kathmandu"), [each, *rest], kinds, t.STRING).as_py() for each in array]
    return whole.to_pylist(), alone


@pytest.mark.parametrize("index", [-1, 0, 1, 2, 9])
@pytest.mark.parametrize("separator", ["/", "//", "", "é"])
def test_columns_are_split_as_single_texts_are(separator: str, index: int) -> None:
    whole, alone = applied("SPLIT_INDEX", TEXTS, t.STRING, separator, index)
    assert whole == alone


@pytest.mark.parametrize("pattern", ["yyyy-MM-dd", "HH:mm", "hh a", "ss", "SSS", "'day' d", "D"])
@pytest.mark.parametrize("kind", [t.TimestampType(3), t.LocalZonedTimestampType(3)])
def test_columns_are_formatted_as_single_moments_are(kind: t.DataType, pattern: str) -> None:
    zone = datetime.UTC if isinstance(kind, t.LocalZonedTimestampType) else None
    first = datetime.datetime(1969, 12, 31, 23, 50, 59, 999000, tzinfo=zone)
    moments = [first + datetime.timedelta(milliseconds=each * 250) for each in range(200)]
    old = datetime.datetime(1880, 1, 1, 12, 30, 15, tzinfo=zone)
    whole, alone = applied("DATE_FORMAT", [*moments, None, old, *moments], kind, pattern)
    assert whole == alone


SCHEMA = pa.schema(
    [("n", pa.int32()), ("r", pa.struct([("s", pa.string()), ("at", pa.timestamp("ms")), ("i", pa.int64())]))]
)
PLAIN = [
    {"n": 1, "r": {"s": "a", "at": "2024-01-01 00:00:00.5", "i": 7}},
    {"r": None},
    {"n": None, "r": {}},
    {"n": 3, "r": {"i": None, "s": "b", "unknown": [1]}, "unknown": {"x": 1}},
]


def test_nested_objects_read_at_once_are_those_read_one_by_one() -> None:
    made = format_named("json", SCHEMA, {})
    lines = [json.dumps(each).encode() for each in PLAIN]
    together = made._decode_together(lines)  # type: ignore[attr-defined]
    assert together is not None
    assert made.type_info.from_arrow(together) == made._decode_singly(lines).values  # type: ignore[attr-defined]
    for odd in ({"r": {"s": 5}}, {"r": 5}, {"r": {"at": "2024-01-01T00:00:00"}}):
        mixed = [*lines, json.dumps(odd).encode()]
        decoded, singly = made.decode(mixed), made._decode_singly(mixed)  # type: ignore[attr-defined]
        assert decoded.rows(made.type_info) == singly.rows(made.type_info)
        assert [bad.index for bad in decoded.errors] == [bad.index for bad in singly.errors]


def test_files_are_read_side_by_side(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_bytes(b"0123456789abcdef\n" * 200_000)  # three splits and more
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), str(tmp_path)).build()
    enumerator = source.create_enumerator(2)
    ends = {"a": 0, "b": 0}
    while not enumerator.finished():
        for part in enumerator.plan(Budget(20_000, 1 << 40, 0)):
            ends[Path(part.start["path"]).name] = part.end
        assert abs(ends["a"] - ends["b"]) <= 2 * 20_000 * 17
