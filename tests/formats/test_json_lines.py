"""Lines of JSON that are read by their common layout give the same values as a JSON parser."""

import json

import numpy as np
import pytest
from format_cases import schema_of
from hypothesis import example, given, settings
from hypothesis import strategies as st

from millstream.formats import format_named, json_lines
from millstream.formats.line_templates import ValueType, parse_template

SCHEMA = schema_of(
    "i INT, l BIGINT, t TINYINT, c STRING, d DOUBLE, b BOOLEAN, ts TIMESTAMP(3), "
    "r ROW<x BIGINT, c STRING, r ROW<y INT>>"
)
INTEGERS = st.one_of(st.integers(-130, 130), st.integers(-(10**19), 10**19), st.sampled_from([10**8, 10**17, 10**18]))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(
    ["", "a" * 40, '"', "\\", "}", "é"]
)
MOMENTS = st.sampled_from(["2023-11-14 23:59:40.123", "1970-01-01 00:00:00.000", "2023-11-14", "x"])
VALUES = {
    "i": st.integers(-(1 << 31), (1 << 31) - 1),
    "l": INTEGERS,
    "t": st.integers(-128, 127) | st.just(128),
    "c": TEXTS,
    "d": st.floats(allow_nan=False, allow_infinity=False) | st.integers(0, 5),
    "b": st.booleans(),
    "ts": MOMENTS,
    "other": TEXTS,
    "count": INTEGERS,
    "share": st.floats(allow_nan=False, allow_infinity=False),
}
ROWS = st.fixed_dictionaries(
    {}, optional={"x": INTEGERS, "c": TEXTS, "r": st.fixed_dictionaries({"y": st.integers(0, 9)}) | st.none()}
)


@pytest.fixture(autouse=True)
def few_lines(monkeypatch):
    monkeypatch.setattr(json_lines, "MIN_LINES", 0)


@st.composite
def batches(draw):
    """Lines as programs write them: few layouts, many values, in batches."""
    names = st.lists(st.sampled_from(sorted(VALUES)), unique=True, min_size=1, max_size=5)
    forms = draw(st.lists(st.tuples(names, st.sets(st.sampled_from(sorted(VALUES)))), min_size=1, max_size=2))
    separators = draw(st.sampled_from([(",", ":"), (", ", ": ")]))
    with_row, ascii_only = draw(st.booleans()), draw(st.booleans())
    made = []
    for size in draw(st.lists(st.integers(1, 8), min_size=1, max_size=3)):
        lines = []
        for _ in range(size):
            fields, nulls = draw(st.sampled_from(forms))
            value = {name: None if name in nulls else draw(VALUES[name]) for name in fields}
            if with_row:
                value["r"] = draw(ROWS)
            lines.append(json.dumps(value, separators=separators, ensure_ascii=ascii_only).encode())
        made.append(lines)
    return made


def decode_single_lines(made, lines):
    decoded = made._decode_singly(lines)
    return None if decoded.errors else str(made.type_info.conform(decoded.rows(made.type_info)))


def assert_same(made, lines):
    """Read at once, or not at all, or as they are read one by one."""
    for end in (b"", b"\n"):
        read = made.decode_lines(b"\n".join(lines) + end)
        if read is not None:
            read.validate(full=True)
            assert str(made.type_info.conform(made.type_info.from_arrow(read))) == decode_single_lines(made, lines)


@settings(max_examples=100, deadline=None)
@given(written=batches())
def test_lines_parsed_by_templates_equal_lines_parsed_one_by_one(written):
    made = format_named("json", SCHEMA)
    for lines in written:
        assert_same(made, lines)


@settings(max_examples=100, deadline=None)
@given(
    written=batches(),
    line=st.integers(0, 99),
    place=st.integers(0, 999),
    sign=st.sampled_from([*'"{}:,0 -1.e9Ntfn\\[]\x00', "", '"x":1,', '"', "é"]),
    kept=st.integers(0, 1),
)
def test_damaged_lines_are_never_misread(written, line, place, sign, kept):
    made = format_named("json", SCHEMA)
    for lines in written:
        made.decode_lines(b"\n".join(lines))  # its layouts are known
    lines = list(written[-1])
    whole = lines[line % len(lines)]
    place %= len(whole)
    lines[line % len(lines)] = whole[:place] + sign.encode() + whole[place + kept :]
    assert_same(made, lines)


REGULAR = [f'{{"i":{n},"c":"{"x" * (n % 11)}","r":{{"x":{-n},"c":"é{n}"}},"d":{n / 7}}}'.encode() for n in range(300)]
TEXT_LAST = [f'{{"i":{n},"c":"{"x" * (n % 11)}"}}'.encode() for n in range(300)]
NUMBER_LAST = [f'{{"c":"{"x" * (n % 11)}","i":{n}}}'.encode() for n in range(300)]
STRANGE = {
    "zero in front": (REGULAR, [b'{"i":01,"c":"x","r":{"x":1,"c":"y"},"d":0.5}']),
    "quote inside": (REGULAR, [b'{"i":1,"c":"x"y","r":{"x":1,"c":"y"},"d":0.5}']),
    "only a minus": (REGULAR, [b'{"i":1,"c":"x","r":{"x":-,"c":"y"},"d":0.5}']),
    "half a number": (REGULAR, [b'{"i":1,"c":"x","r":{"x":1,"c":"y"},"d":.5}']),
    "no number": (REGULAR, [b'{"i":1,"c":"x","r":{"x":1,"c":"y"},"d":}']),
    "open bracket": (REGULAR, [b'{"i":1,"c":"x","r":{"x":1,"c":"y","d":0.5}']),
    "too large": (REGULAR, [b'{"i":4294967296,"c":"x","r":{"x":1,"c":"y"},"d":0.5}']),
    "too long": (REGULAR, [b'{"i":1,"c":"x","r":{"x":9999999999999999999,"c":"y"},"d":0.5}']),
    "another field": (TEXT_LAST, [b'{"i":1,"c":"x","z":"y"}']),
    "escaped": (TEXT_LAST, [rb'{"i":1,"c":"x\ny"}']),
    "one quote here, three there": (TEXT_LAST, [b'{"i":1,"c":"}', b'{"i":1,"c":"x"y"}']),
    "bracket too many": (NUMBER_LAST, [b'{"c":"x","i":1}}']),
    "two objects": (NUMBER_LAST, [b'{"c":"x","i":1}{"c":"x","i":1}']),
}


@pytest.mark.parametrize("case", STRANGE)
def test_an_unusual_line_is_parsed_by_the_parser(case):
    regular, strange = STRANGE[case]
    made = format_named("json", SCHEMA)
    for at in (0, 150, 300):
        assert made._lines.columns(b"\n".join(regular), line_ends_of(b"\n".join(regular))) is not None
        assert_same(made, [*regular[:at], *strange, *regular[at:]])


def line_ends_of(text):
    return np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))


def test_typical_lines_are_read_without_the_parser():
    lines = format_named("json", SCHEMA)._lines
    for batch in (REGULAR, REGULAR[150:], [*REGULAR, b'{"c":"another","b":true}', b'{"c":null,"b":null}'], REGULAR[:1]):
        text = b"\n".join(batch)
        columns = lines.columns(text, line_ends_of(text))
        assert columns is not None
        assert columns[0].to_pylist() == [json.loads(line).get("i") for line in batch]
        assert columns[3].to_pylist() == [json.loads(line).get("c") for line in batch]


def test_templates_are_disabled_for_lines_without_a_common_form():
    lines = format_named("json", SCHEMA)._lines
    for number in range(100):
        text = b"\n".join(b'{"f%d":1}' % (1000 * number + each) for each in range(100))
        assert lines.columns(text, line_ends_of(text)) is None
    assert len(lines._learned) <= 16
    assert lines.columns(b'{"i":1}', line_ends_of(b"")) is None  # the fast path is no longer tried: the parser reads it


@example(b'{"a": {"b": 1.5e3, "c": ""}, "d": null}')
@given(
    st.sampled_from(
        [b'{"a":[1]}', b'{"a":1,"a":2}', b'{"a":"\\n"}', b"[]", b"{}x", b'{"a":1}{"a":1}', b"1", b'{"a":tru}', b"{"]
    )
)
def test_only_objects_of_plain_values_have_a_template(line):
    template = parse_template(line)
    if b"1.5e3" in line:
        assert template.texts == (b'{"a": {"b": ', b', "c": "', b'"}, "d": null}')
        assert [each.type for each in template.placeholders] == [ValueType.NUMBER, ValueType.TEXT]
    else:
        assert template is None
