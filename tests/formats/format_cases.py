# ruff: noqa: E501
"""Test cases of formats: a schema in Flink's syntax, options, and records. The golden files have Flink's results."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

KINDS = "b BOOLEAN, t TINYINT, s SMALLINT, i INT, l BIGINT, f FLOAT, d DOUBLE, c STRING"
TIMES = "d DATE, t TIME(0), ts TIMESTAMP(3), ltz TIMESTAMP_LTZ(3)"


@dataclass(frozen=True)
class Case:
    """One table and the messages it is given. `written` holds rows, as JSON values, that are encoded."""

    name: str
    format: str
    schema: str
    records: tuple[bytes, ...] = ()
    options: dict[str, str] = field(default_factory=dict)


def one(name: str, format_: str, schema: str, *records: str | bytes, **options: str) -> Case:
    data = tuple(record.encode() if isinstance(record, str) else record for record in records)
    return Case(
        name, format_, schema, data, {key.replace("__", ".").replace("_", "-"): v for key, v in options.items()}
    )


def values(kind: str, *texts: str) -> tuple[str, ...]:
    return tuple(f'{{"v":{text}}}' for text in texts)


NUMBERS = (
    "1",
    "-1",
    '"2"',
    '" 3 "',
    "4.0",
    "4.9",
    '"4.9"',
    "1e2",
    "300",
    "70000",
    "3000000000",
    "1e30",
    '""',
    '"x"',
    "true",
    "null",
    "[1]",
    '{"a":1}',
    "-0",
    "9223372036854775808",
    '"+5"',
    '"0x10"',
    "1.5E300",
    '"NaN"',
    '"1d"',
)
TEXTS = (
    '"a"',
    "1",
    "1.10",
    "1e3",
    "true",
    "null",
    '{"a": [1, 2.0] , "b":null}',
    "[1, 2]",
    '""',
    '"\\u00e9\\n"',
    '"\\ud83d\\ude00"',
    '"\\ud800"',
    "1.0",
    "100000000000000000000",
    '"a\tb"',
)
MOMENTS = (
    '"2020-01-02 03:04:05"',
    '"2020-01-02T03:04:05"',
    '"2020-01-02 03:04:05.1"',
    '"2020-01-02 03:04:05.123456789"',
    '"2020-01-02 03:04"',
    '"2020-02-30 00:00:00"',
    '"2020-01-02 24:00:00"',
    '"2020-01-02 03:04:05Z"',
    '"2020-01-02T03:04:05Z"',
    '"2020-01-02T03:04:05.123Z"',
    '"2020-01-02T03:04"',
    '"2020-1-2 03:04:05"',
    '" 2020-01-02 03:04:05"',
    '""',
    '"x"',
    "1577934245000",
    "null",
    '"2020-01-02"',
    '"2020-01-02 03:04:05."',
    '"2020-01-02 25:00:00"',
    '"1583-01-01 00:00:00"',
    '"1969-12-31 23:59:59.9996"',
    '"1969-12-31 23:59:59.999"',
    '"2020-01-02T03:04:05+01:00"',
)
DAYS = (
    '"2020-01-02"',
    '"2020-02-30"',
    '"2020-1-2"',
    '"x"',
    '""',
    "18263",
    "null",
    '"2020-01-02 "',
    '"2020-01-02T00:00:00"',
)
HOURS = ('"03:04:05"', '"03:04:05.123"', '"03:04"', '"24:00:00"', '"3:04:05"', '"x"', '""', "null", "11045000")
DECIMALS = (
    "1",
    "1.005",
    "-1.005",
    "12345678.9",
    "123456789.1",
    '"1.5"',
    '" 1.5 "',
    '"x"',
    '""',
    "1e2",
    "null",
    "true",
    "99999999.999",
)
WHOLE = (
    '{"v":1}',
    '{"v":1',
    "",
    " ",
    "null",
    "[]",
    "7",
    '"x"',
    "{}",
    '{"v":1}{"v":2}',
    '{"v":1} x',
    '{"w":1}',
    '{"v":1,"v":2}',
    '{"V":1}',
    b"\xff",
    b'{"v":"\xff"}',
    "{'v':1}",
    '{"v":1,}',
    '{"v":NaN}',
    '{"v":01}',
    '{"v":+1}',
    '{"v":.5}',
    '/*c*/{"v":1}',
    "\ufeff" + '{"v":1}',
    '{"v":\n1}',
    "true",
    '[{"v":1},{"v":2}]',
    '{"w":{"v":3},"v":1}',
)

SEVERAL = (
    "[1]",
    "[null]",
    '[{"v":"x"},{"v":2}]',
    '[{"v":1},7]',
    '{"v":1,"v":2,"w":"a"}',
    '{"v":1,"w":"a","v":2}',
    '{"w":"a","w":null,"v":1}',
    '[[{"v":1}]]',
    '[{"v":1},{"v":2}',
    '[{"v":1}] x',
    '{"v":1,"w":"a","x":',
    '{"v":null,"v":3}',
    '{"v":1,"w":"a"',
    '{"v":1,"w":"a",}',
    '{"w":"a","x":{"v":2},"v":1}',
    '{"x":[1,{"v":9}],"v":1}',
)

JSON_CASES = [
    *(one(f"json {kind}", "json", f"v {kind}", *values(kind, *NUMBERS))
      for kind in ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE")),
    one("json STRING", "json", "v STRING", *values("STRING", *TEXTS)),
    one("json TIMESTAMP", "json", "v TIMESTAMP(3)", *values("", *MOMENTS)),
    one("json TIMESTAMP iso", "json", "v TIMESTAMP(3)", *values("", *MOMENTS), timestamp_format__standard="ISO-8601"),
    one("json TIMESTAMP_LTZ", "json", "v TIMESTAMP_LTZ(3)", *values("", *MOMENTS)),
    one("json TIMESTAMP_LTZ iso", "json", "v TIMESTAMP_LTZ(3)", *values("", *MOMENTS),
        timestamp_format__standard="ISO-8601"),
    one("json DATE", "json", "v DATE", *values("", *DAYS)),
    one("json TIME", "json", "v TIME(0)", *values("", *HOURS)),
    one("json DECIMAL", "json", "v DECIMAL(10,2)", *values("", *DECIMALS)),
    one("json BYTES", "json", "v BYTES", *values("", '"YWI="', '"YWI"', '"!"', '""', "1", "null")),
    one("json ARRAY", "json", "v ARRAY<INT>",
        *values("", "[1,2]", "[]", "[null]", '["3"]', "null", "1", '{"a":1}', '["x"]', "[[1]]")),
    one("json MAP", "json", "v MAP<STRING,INT>",
        *values("", '{"a":1}', "{}", '{"a":null}', "null", "1", "[]", '{"a":"x"}', '{"a":1,"a":2}')),
    one("json ROW", "json", "v ROW<x INT,y STRING>",
        *values("", '{"x":1,"y":"a"}', '{"y":"a"}', "{}", "null", "1", "[1]", '{"x":"q"}', '{"x":1,"z":[]}')),
    one("json whole", "json", "v INT", *WHOLE),
    one("json several", "json", "v INT, w STRING", *SEVERAL),
    one("json several ignoring", "json", "v INT, w STRING", *SEVERAL, ignore_parse_errors="true"),
    one("json missing", "json", "v INT, w STRING", '{"v":1}', '{"v":1,"w":null}', "{}", fail_on_missing_field="true"),
    one("json ignoring", "json", "v INT, w STRING, r ROW<x INT>, a ARRAY<INT>", '{"v":"x","w":"a"}', "{", "", "7", "[]",
        '{"v":1,"r":{"x":"q"}}', '{"v":1,"r":3,"a":[1,"x",3]}', '{"v":1,"a":{}}', b"\xff", '{"v":1', '{"v":1,"w":"a"} x',
        ignore_parse_errors="true"),
]  # fmt: skip

LINES = ("1,a", "1", "1,a,b", "", ",", "1,", ",a", '1,"a"', '1,"a,b"', '1,"a""b"', '1,"a', '1,a"b', '1,"a"b', " 1 , a ", "x,a",
         '"1",a', "1,null", "1,a\n", "#1,a", "1;a", "+1,a", "1.0,a", "3000000000,a", b"1,\xff", "\n", "1,a\n2,b", "1,'a'",
         '"",""', "\\1,\\a", "1,a\\,b", " ,a", "1,é", "null,a", '1,"null"', ' "1",a', '1, "a"', '1,"a" ', '1,"a" ,b', '"null",a', '1,""', '1,"a\nb"', "1,a\r", "1,a\r\n", "1,\ta")  # fmt: skip


def csv_values(*texts: str) -> tuple[str, ...]:
    return texts


CSV_CASES = [
    one("csv plain", "csv", "i INT, c STRING", *LINES),
    one("csv null literal", "csv", "i INT, c STRING", *LINES, null_literal="null"),
    one("csv ignoring", "csv", "i INT, c STRING", *LINES, ignore_parse_errors="true"),
    one(
        "csv other signs",
        "csv",
        "i INT, c STRING",
        "1;a",
        "1;'a;b'",
        "1;'a''b'",
        '1;"a"',
        "1;a;b",
        field_delimiter=";",
        quote_character="'",
    ),
    one("csv escape", "csv", "i INT, c STRING", "1,a\\,b", '1,"a\\"b"', "1,a\\nb", "1,\\\\", escape_character="\\"),
    one("csv comments", "csv", "i INT, c STRING", "#1,a", "1,a", "1,#a", " #1,a", allow_comments="true"),
    one("csv no quotes", "csv", "i INT, c STRING", '1,"a"', "1,a", disable_quote_character="true"),
    *(
        one(
            f"csv {kind}",
            "csv",
            f"k INT, v {kind}",
            *(
                f"0,{text}"
                for text in (
                    "1",
                    "-1",
                    " 2 ",
                    "4.0",
                    "4.9",
                    "1e2",
                    "300",
                    "70000",
                    "3000000000",
                    "",
                    "x",
                    "true",
                    "TRUE",
                    "false",
                    "yes",
                    "NaN",
                    "Infinity",
                    "nan",
                    "inf",
                    "0x10",
                    "1d",
                    "1_000",
                    "null",
                    "+5",
                    "  ",
                    "-0",
                    ".5",
                    "5.",
                    "1L",
                    "9223372036854775808",
                )
            ),
        )
        for kind in ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE")
    ),
    one("csv TIMESTAMP", "csv", "k INT, v TIMESTAMP(3)", *(f"0,{text[1:-1]}" for text in MOMENTS if text[0] == '"')),
    one("csv TIMESTAMP_LTZ", "csv", "k INT, v TIMESTAMP_LTZ(3)", *(f"0,{t[1:-1]}" for t in MOMENTS if t[0] == '"')),
    one("csv DATE", "csv", "k INT, v DATE", *(f"0,{text.strip(chr(34))}" for text in DAYS)),
    one("csv TIME", "csv", "k INT, v TIME(0)", *(f"0,{text.strip(chr(34))}" for text in HOURS)),
    one("csv DECIMAL", "csv", "k INT, v DECIMAL(10,2)", *(f"0,{text.strip(chr(34))}" for text in DECIMALS)),
    one("csv BYTES", "csv", "k INT, v BYTES", "0,YWI=", "0,YWI", "0,!", "0,"),
    one("csv ARRAY", "csv", "k INT, v ARRAY<INT>", "0,1;2", "0,", "0,1", "0,x;1", "0,;", '0,"1;2"', "0,1; 2"),
    one("csv ARRAY sign", "csv", "k INT, v ARRAY<STRING>", "0,a|b", "0,a", "0,", array_element_delimiter="|"),
    one("csv ROW", "csv", "k INT, v ROW<x INT,y STRING>", "0,1;a", "0,1", "0,", "0,x;a", "0,1;a;b"),
]

ROW1, ROW2 = '{"id":1,"name":"a","w":1.5}', '{"id":1,"name":"b","w":null}'
CHANGES = "id INT, name STRING, w DOUBLE"
DEBEZIUM = (
    f'{{"before":null,"after":{ROW1},"op":"c"}}', f'{{"before":null,"after":{ROW1},"op":"r"}}',
    f'{{"before":{ROW1},"after":{ROW2},"op":"u"}}', f'{{"before":{ROW1},"after":null,"op":"d"}}',
    f'{{"after":{ROW1},"op":"c","source":{{"db":"x"}},"ts_ms":1}}', f'{{"before":null,"after":{ROW2},"op":"u"}}',
    '{"before":null,"after":null,"op":"d"}', f'{{"before":null,"after":{ROW1},"op":"t"}}', f'{{"after":{ROW1}}}', "",
    "{}", "x", '{"before":null,"after":null,"op":"c"}', '{"before":null,"after":{"id":"q"},"op":"c"}', "null", "7",
    f'{{"before":null,"after":{ROW1},"op":null}}', f'{{"before":null,"after":{ROW1},"op":"C"}}',
)  # fmt: skip
CANAL = (
    f'{{"data":[{ROW1}],"type":"INSERT","database":"db","table":"t"}}',
    f'{{"data":[{ROW1},{ROW2}],"type":"INSERT","old":null,"database":"db","table":"t"}}',
    f'{{"data":[{ROW2}],"old":[{{"name":"a","w":1.5}}],"type":"UPDATE","database":"db","table":"u"}}',
    f'{{"data":[{ROW2}],"old":[{{"name":null}}],"type":"UPDATE","database":"db2","table":"t"}}',
    f'{{"data":[{ROW1}],"type":"DELETE","database":"db","table":"t"}}',
    '{"data":null,"type":"CREATE","database":"db","table":"t"}', '{"data":null,"type":"ALTER","database":"db","table":"t"}',
    f'{{"data":[{ROW2}],"old":null,"type":"UPDATE","database":"db","table":"t"}}',
    '{"data":[{"id":"1","name":"a","w":"1.5"}],"type":"INSERT","database":"db","table":"t"}',
    '{"data":[{"id":"q"}],"type":"INSERT","database":"db","table":"t"}', "", "x", "{}", "7",
    '{"data":[],"type":"INSERT","database":"db","table":"t"}', f'{{"data":{ROW1},"type":"INSERT","database":"db","table":"t"}}',
    '{"data":null,"type":"INSERT","database":"db","table":"t"}', f'{{"data":[{ROW1}],"type":"insert","database":"db","table":"t"}}',
    f'{{"data":[{ROW1}],"database":"db","table":"t"}}', f'{{"data":[{ROW1}],"type":"INSERT"}}',
    f'{{"data":[null,{ROW1}],"type":"INSERT","database":"db","table":"t"}}',
)  # fmt: skip
MAXWELL = (
    f'{{"data":{ROW1},"type":"insert","database":"db","table":"t"}}', f'{{"data":{ROW2},"old":{{"name":"a"}},"type":"update"}}',
    f'{{"data":{ROW2},"old":{{"name":null,"w":2}},"type":"update"}}', f'{{"data":{ROW1},"type":"delete"}}',
    f'{{"data":{ROW1},"type":"bootstrap-insert"}}', f'{{"data":{ROW1},"type":"bootstrap-start"}}', "", "x", "{}", "7",
    f'{{"data":{ROW2},"type":"update"}}', '{"data":{"id":"q"},"type":"insert"}', '{"data":null,"type":"insert"}',
    f'{{"data":{ROW1},"type":"INSERT"}}', f'{{"data":{ROW1}}}', '{"data":{},"type":"delete"}',
)  # fmt: skip
CHANGELOG_CASES = [
    one("debezium", "debezium-json", CHANGES, *DEBEZIUM),
    one("debezium ignoring", "debezium-json", CHANGES, *DEBEZIUM, ignore_parse_errors="true"),
    one("debezium schema", "debezium-json", CHANGES,
        *(f'{{"schema":{{"type":"struct"}},"payload":{text}}}' for text in DEBEZIUM if text), "{}", schema_include="true"),
    one("canal", "canal-json", CHANGES, *CANAL),
    one("canal ignoring", "canal-json", CHANGES, *CANAL, ignore_parse_errors="true"),
    one("canal one table", "canal-json", CHANGES, *CANAL, database__include="db", table__include="t|x"),
    one("maxwell", "maxwell-json", CHANGES, *MAXWELL),
    one("maxwell ignoring", "maxwell-json", CHANGES, *MAXWELL, ignore_parse_errors="true"),
]  # fmt: skip

DECODED = [*JSON_CASES, *CSV_CASES, *CHANGELOG_CASES]

#: Rows to encode: format, schema, options, rows as JSON text that Flink's and our json format read first.
EVERYTHING = (
    "b BOOLEAN, t TINYINT, l BIGINT, f FLOAT, d DOUBLE, c STRING, n DECIMAL(10,2), da DATE, ti TIME(0), "
    "ts TIMESTAMP(3), y BYTES"
)
FLAT_ROWS = (
    '{"b":true,"t":1,"l":-5,"f":1.5,"d":0.1,"c":"a\\"b\\n\\u001f\\u00e9/","n":1.5,"da":"2020-01-02","ti":"03:04:05",'
    '"ts":"2020-01-02 03:04:05.120","y":"YWI="}',
    "{}",
    '{"b":false,"f":1e20,"d":1e300,"c":"","n":0.00,"ts":"2020-01-02 03:04:00","ti":"00:00:00"}',
    '{"f":0.1,"d":100.0,"c":"a,b;c","n":-0.01,"ts":"1969-12-31 23:59:59.999","ti":"23:59:59"}',
    '{"f":1e-5,"d":1234567.0,"c":"null","n":12345678.90,"y":""}',
    '{"d":12345678.0,"c":" a ","l":9223372036854775807}',
    '{"d":-0.0,"c":"\\"quoted\\""}',
    '{"d":1e21,"c":"#x"}',
    '{"d":0.001,"c":"a\\tb"}',
    '{"d":0.0001,"c":"\\ud83d\\ude00"}',
    '{"n":100.00,"c":"abcdefghijklmnopqrstuvwxy"}',
    '{"n":1000000.00,"c":"abcdefghijklmnopqrstuvwx"}',
    '{"c":"it\'s"}',
    '{"c":"a+b\\\\c"}',
    '{"c":"\\u007f\\u2028"}',
)
NESTED = "a ARRAY<INT>, m MAP<STRING,DOUBLE>, r ROW<x INT,y ARRAY<STRING>>"
NESTED_ROWS = (
    '{"a":[1,null,2],"m":{"k":1.5},"r":{"x":1,"y":["p","q"]}}',
    '{"a":[],"m":{},"r":{}}',
    "{}",
    '{"m":{"n":null},"r":{"y":[null,""]}}',
)
ENCODED = [
    ("json", EVERYTHING, {}, FLAT_ROWS),
    ("json", EVERYTHING + ", z TIMESTAMP_LTZ(3)", {"timestamp-format.standard": "ISO-8601"},
     (*FLAT_ROWS, '{"z":"2020-01-02T03:04:05.120Z","ts":"2020-01-02T03:04:00"}')),
    ("json", EVERYTHING, {"encode.ignore-null-fields": "true", "encode.decimal-as-plain-number": "true"}, FLAT_ROWS),
    ("json", NESTED, {}, NESTED_ROWS),
    ("json", NESTED, {"encode.ignore-null-fields": "true"}, NESTED_ROWS),
    ("csv", EVERYTHING, {}, FLAT_ROWS),
    ("csv", EVERYTHING, {"null-literal": "n/a", "field-delimiter": ";", "quote-character": "'"}, FLAT_ROWS),
    ("csv", EVERYTHING, {"disable-quote-character": "true"}, FLAT_ROWS),
    ("csv", EVERYTHING, {"escape-character": "\\"}, FLAT_ROWS),
    ("csv", "i INT, a ARRAY<INT>, r ROW<x INT,y STRING>", {}, ('{"i":1,"a":[1,2],"r":{"x":1,"y":"p"}}', '{"i":1}',
     '{"a":[]}', '{"r":{}}', '{"a":[null,1]}')),
    ("debezium-json", CHANGES, {}, (ROW1, ROW2)),
    ("canal-json", CHANGES, {}, (ROW1, ROW2)),
    ("maxwell-json", CHANGES, {}, (ROW1, ROW2)),
]  # fmt: skip


AVRO_SCHEMA = (
    "b BOOLEAN, t TINYINT, i INT, l BIGINT, f FLOAT, d DOUBLE, c STRING, n DECIMAL(10,2), da DATE, ti TIME(0), "
    "ts TIMESTAMP(3), y BYTES, a ARRAY<INT>, m MAP<STRING,INT>, r ROW<x INT,y STRING>, rr ARRAY<ROW<z INT>>"
)
AVRO_ROWS = (
    '{"b":true,"t":1,"i":-2,"l":3,"f":0.5,"d":0.25,"c":"\u00e9","n":1.50,"da":"2020-01-02","ti":"03:04:05",'
    '"ts":"2020-01-02 03:04:05.678","y":"YWI=","a":[1,null],"m":{"k":1},"r":{"x":1,"y":"p"},"rr":[{"z":1}]}',
    "{}",
    '{"n":-0.01,"da":"1969-12-31","ts":"1969-12-31 23:59:59.999","ti":"00:00:00","r":{},"a":[],"m":{}}',
)


def fields_of(schema: str) -> list[tuple[str, str]]:
    """The names and types of `a INT, b ROW<x INT,y STRING>`."""
    depth, parts, now = 0, [], ""
    for sign in schema:
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(sign, 0)
        if sign == "," and depth == 0:
            parts.append(now)
            now = ""
        else:
            now += sign
    return [tuple(part.strip().split(" ", 1)) for part in [*parts, now]]  # type: ignore[misc]


_ARROW: dict[str, Any] = {
    "STRING": pa.string(), "BOOLEAN": pa.bool_(), "TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INT": pa.int32(),
    "BIGINT": pa.int64(), "FLOAT": pa.float32(), "DOUBLE": pa.float64(), "BYTES": pa.binary(), "DATE": pa.date32(),
    "TIME(0)": pa.time32("s"), "TIMESTAMP(3)": pa.timestamp("ms"), "TIMESTAMP_LTZ(3)": pa.timestamp("ms", "UTC"),
}  # fmt: skip


def arrow_of(kind: str) -> pa.DataType:
    """The Arrow type of a type in Flink's words."""
    if kind in _ARROW:
        return _ARROW[kind]
    if found := re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", kind):
        return pa.decimal128(int(found[1]), int(found[2]))
    if found := re.fullmatch(r"ARRAY<(.*)>", kind):
        return pa.list_(arrow_of(found[1]))
    if found := re.fullmatch(r"MAP<(\w+),(.*)>", kind):
        return pa.map_(arrow_of(found[1]), arrow_of(found[2]))
    if found := re.fullmatch(r"ROW<(.*)>", kind):
        return pa.struct(list(schema_of(found[1])))
    raise ValueError(kind)


def schema_of(schema: str) -> pa.Schema:
    """The Arrow schema of a list of fields in Flink's words."""
    return pa.schema([(name, arrow_of(kind)) for name, kind in fields_of(schema)])
