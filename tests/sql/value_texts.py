"""Values whose texts are compared with Flink's: SQL expressions, and records of typed streams.

The recorder and the test share this file; it imports the standard library only."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[1] / "golden" / "sql" / "ends" / "texts.yaml"


def _casts(data_type: str, *values: str) -> list[str]:
    return [f"CAST({value} AS {data_type})" for value in values]


_TIMES = ("2024-01-02 03:04:05", "2024-01-02 03:04:00", "2024-01-02 00:00:00", "1969-12-31 23:59:59.999")
_FRACTIONS = ("2024-01-02 03:04:05.678", "2024-01-02 03:04:05.1", "2024-01-02 03:04:05.123456")
_NANOS = ("2024-01-02 03:04:05.123456789", "2024-01-02 03:04:05.100000000", "2024-01-02 03:04:05.000000001")
_SCALARS = {
    "BOOLEAN": ("TRUE", "FALSE", "NULL"),
    "TINYINT": ("0", "-128", "127"),
    "SMALLINT": ("-32768",),
    "INT": ("-2147483648", "2147483647"),
    "BIGINT": ("9223372036854775807", "CAST('-9223372036854775808' AS BIGINT)"),
    "FLOAT": (
        *("0", "-1", "130.1", "1.1", "0.001", "0.0009", "1.0E7", "9999999", "1.0E10", "3.4028235E38"),
        *("16777216", "16777217", "0.1", "123456.789", "'-0.0'"),
    ),
    "DOUBLE": (
        *("0", "-1", "130.1", "0.001", "0.0009", "1.0E7", "9999999.5", "1.0E10", "123456789.125", "1.0E-5"),
        *("'4.9E-324'", "1.7976931348623157E308", "2.0E-3", "'-0.0'"),
    ),
    "DECIMAL(10, 0)": ("0", "-12", "9999999999"),
    "DECIMAL(10, 2)": ("0", "1.5", "-0.01", "12345678.90", "1.005"),
    "DECIMAL(20, 10)": ("0", "1", "0.0000000001", "-0.0000001", "0.000001"),
    "DECIMAL(38, 18)": ("0", "1.000000000000000001", "'12345678901234567890.123456789012345678'"),
    "DECIMAL(38, 38)": ("0", "0.5"),
    "CHAR(5)": ("'ab'", "'abcde'", "''"),
    "VARCHAR(3)": ("'abcdef'", "''"),
    "STRING": ("''", "'a b'", "'a''b'", "'ä€𝄞'", "'[x, y]'"),
    "BINARY(3)": ("X'0AFF'", "X'414243'"),
    "BYTES": ("X''", "X'0AFF'", "X'414243'", "X'F09D849E'"),
    "DATE": ("'2024-01-02'", "'0001-01-01'", "'9999-12-31'", "'1969-12-31'"),
    "TIME": ("'10:00:00'", "'10:30:05'", "'00:00:00'", "'23:59:59'"),
    "TIME(3)": ("'10:00:00.12'", "'10:00:00'", "'10:00:00.123'", "'10:00:30.001'"),
    "TIMESTAMP(0)": tuple(f"'{text}'" for text in (*_TIMES, *_FRACTIONS)),
    "TIMESTAMP(2)": tuple(f"'{text}'" for text in (*_TIMES[:2], *_FRACTIONS)),
    "TIMESTAMP(3)": tuple(
        f"'{text}'" for text in (*_TIMES, *_FRACTIONS, "0001-01-01 00:00:00", "9999-12-31 23:59:59.999")
    ),
    "TIMESTAMP(6)": tuple(f"'{text}'" for text in (*_TIMES, *_FRACTIONS, "2024-01-02 03:04:05.000001")),
    "TIMESTAMP(7)": tuple(f"'{text}'" for text in (*_FRACTIONS, *_NANOS)),
    "TIMESTAMP(9)": tuple(f"'{text}'" for text in (*_TIMES, *_FRACTIONS, *_NANOS)),
    "TIMESTAMP_LTZ(0)": tuple(f"'{text}'" for text in (*_TIMES[:2], *_FRACTIONS)),
    "TIMESTAMP_LTZ(3)": tuple(f"'{text}'" for text in (*_TIMES, *_FRACTIONS)),
    "TIMESTAMP_LTZ(6)": tuple(f"'{text}'" for text in (*_TIMES[:2], *_FRACTIONS)),
    "TIMESTAMP_LTZ(9)": tuple(f"'{text}'" for text in (*_TIMES[:3], *_FRACTIONS, *_NANOS)),
}
_LITERALS = [
    "TIMESTAMP '2021-04-13 20:12:11'",
    "TIMESTAMP '2021-04-13 20:12:11.1'",
    "TIMESTAMP '2021-04-13 20:12:11.123456789'",
    "TIMESTAMP '2021-04-13 20:12:11.120'",
    "DATE '2021-04-13'",
    "TIME '20:12:11'",
    "TIME '20:12:11.123'",
    "INTERVAL '1' YEAR",
    "INTERVAL '14' MONTH",
    "INTERVAL '-2-3' YEAR TO MONTH",
    "INTERVAL '0' MONTH",
    "INTERVAL '1' DAY",
    "INTERVAL '0' SECOND",
    "INTERVAL '1 02:03:04.567' DAY TO SECOND",
    "INTERVAL '-1 02:03:04' DAY TO SECOND",
    "INTERVAL '90' MINUTE",
    "INTERVAL '1.5' SECOND",
    "INTERVAL '25' HOUR",
    "1",
    "1.0",
    "1e0",
    "'text'",
    "_UTF16'text'",
    "X'0AFF'",
    "CAST(NULL AS INT)",
    "CAST(NULL AS STRING)",
    "CAST(NULL AS ROW<a INT>)",
]
_NESTED = [
    "ARRAY[1, 2, 3]",
    "ARRAY['a', 'b c', '']",
    "ARRAY[TRUE, FALSE]",
    "ARRAY[1, CAST(NULL AS INT)]",
    "ARRAY[CAST(130.1 AS FLOAT), CAST(0.1 AS FLOAT)]",
    "ARRAY[CAST(130.1 AS DOUBLE), 1e10]",
    "ARRAY[1.50, 2.25]",
    "ARRAY[TIMESTAMP '2024-01-02 03:04:05.678', TIMESTAMP '2024-01-02 03:04:00.000']",
    "ARRAY[TIMESTAMP '2024-01-02 03:04:05.123456789']",
    "ARRAY[CAST(TIMESTAMP '2024-01-02 03:04:05.678' AS TIMESTAMP_LTZ(3))]",
    "ARRAY[DATE '2024-01-02']",
    "ARRAY[TIME '10:00:00', TIME '10:00:01']",
    "ARRAY[X'0AFF', X'41']",
    "ARRAY[ARRAY[1, 2], ARRAY[3]]",
    "ARRAY[ROW(1, 'a'), ROW(2, 'b')]",
    "ARRAY[MAP['a', 1], MAP['b', 2]]",
    "ARRAY[INTERVAL '1' DAY]",
    "ARRAY[INTERVAL '14' MONTH]",
    "CAST(ARRAY[1, 2] AS ARRAY<BIGINT NOT NULL>)",
    "CAST(ARRAY[1, 2] AS ARRAY<TINYINT>)",
    "MAP['a', 1]",
    "MAP['a', CAST(NULL AS INT)]",
    "MAP['k', X'0AFF']",
    "MAP[1, TIMESTAMP '2024-01-02 03:04:05.678']",
    "MAP[CAST(1.1 AS FLOAT), TRUE]",
    "MAP[DATE '2024-01-02', TIME '10:00:00']",
    "MAP['k', MAP['x', 1]]",
    "MAP['k', ROW(1, 'a')]",
    "MAP['k', ARRAY[1, 2]]",
    "MAP['k', 1.50]",
    "ROW(1, 'a')",
    "ROW(1)",
    "ROW(TRUE, CAST(NULL AS STRING))",
    "ROW(CAST(130.1 AS FLOAT), CAST(130.1 AS DOUBLE), 1.50)",
    "ROW(TIMESTAMP '2024-01-02 03:04:05.678', DATE '2024-01-02', TIME '10:00:00')",
    "ROW(TIMESTAMP '2024-01-02 03:04:05.123456789')",
    "ROW(CAST(TIMESTAMP '2024-01-02 03:04:05.678' AS TIMESTAMP_LTZ(3)))",
    "ROW(X'0AFF')",
    "ROW(ROW(1, 'a'), ARRAY[1], MAP['a', 1])",
    "ROW(INTERVAL '1' DAY, INTERVAL '14' MONTH)",
    "CAST(ROW(1, 'a') AS ROW<x BIGINT, y STRING>)",
    'PARSE_JSON(\'{"a": [1, 2.5, null, true, "x"]}\')',
    "PARSE_JSON('1')",
    "PARSE_JSON('\"s\"')",
]
_OPERATIONS = [
    "CONCAT('<', CAST(CAST(130.1 AS FLOAT) AS STRING), '>')",
    "'<' || CAST(TIMESTAMP '2024-01-02 03:04:05.678' AS STRING) || '>'",
    "CAST(CAST('ab' AS CHAR(5)) AS STRING) || '|'",
    "CAST(X'414243' AS STRING)",
    "CAST(1.5 AS VARCHAR(2))",
    "CAST(TRUE AS CHAR(6))",
    "CAST(123 AS CHAR(5)) || '|'",
    "CAST(CAST(0.1 AS DOUBLE) AS FLOAT)",
    "CAST(CAST(1.9 AS FLOAT) AS INT)",
    "CAST(CAST(130.1 AS FLOAT) AS BIGINT)",
    "JSON_STRING(CAST(130.1 AS FLOAT))",
    "JSON_OBJECT('x' VALUE CAST(130.1 AS FLOAT))",
    "JSON_ARRAY(CAST(130.1 AS FLOAT), CAST(0.1 AS DOUBLE), 1.50)",
    "TIMESTAMP '2021-04-13 20:12:11.123456789' = TIMESTAMP '2021-04-13 20:12:11.123456700'",
    "TIMESTAMP '2021-04-13 20:12:11.123456789' > TIMESTAMP '2021-04-13 20:12:11.123456788'",
    "TIMESTAMP '2021-04-13 20:12:11.123456789' = TIMESTAMP '2021-04-13 20:12:11.123456789'",
    "TIMESTAMP '2021-04-13 20:12:11.1234567' "
    "BETWEEN TIMESTAMP '2021-04-13 20:12:11.1234566' AND TIMESTAMP '2022-04-13 00:00:00'",
    "TIMESTAMP '2021-04-13 20:12:11.123456789' IN (TIMESTAMP '2021-04-13 20:12:11.123456700')",
    "CAST(TIMESTAMP '2021-04-13 20:12:11.123456789' AS TIMESTAMP(3))",
    "CAST(TIMESTAMP '2021-04-13 20:12:11.123456789' AS TIMESTAMP(7))",
    "CAST(TIMESTAMP '2021-04-13 20:12:11.123456789' AS TIMESTAMP_LTZ(9))",
    "CAST(CAST(TIMESTAMP '2021-04-13 20:12:11.123456789' AS TIMESTAMP_LTZ(9)) AS TIMESTAMP(9))",
    "CAST(TIMESTAMP '2021-04-13 20:12:11.123456789' AS DATE)",
    "CAST(TIMESTAMP '2021-04-13 20:12:11.123456789' AS TIME)",
    "CAST(DATE '2021-04-13' AS TIMESTAMP(9))",
    "TIMESTAMP '2021-04-13 20:12:11.123456789' + INTERVAL '1' SECOND",
    "TIMESTAMP '2021-04-13 20:12:11.123456789' - INTERVAL '1' MONTH",
    "TIMESTAMP '2021-04-13 20:12:11.123456' + INTERVAL '1' SECOND",
    "TIMESTAMPDIFF(SECOND, TIMESTAMP '2021-04-13 20:12:11.123456789', TIMESTAMP '2021-04-13 20:12:12.123456788')",
    "TIMESTAMPADD(DAY, 1, TIMESTAMP '2021-04-13 20:12:11.123456789')",
    "EXTRACT(NANOSECOND FROM TIMESTAMP '2021-04-13 20:12:11.123456789')",
    "EXTRACT(MICROSECOND FROM TIMESTAMP '2021-04-13 20:12:11.123456789')",
    "EXTRACT(MILLISECOND FROM TIMESTAMP '2021-04-13 20:12:11.123456789')",
    "FLOOR(TIMESTAMP '2021-04-13 20:12:11.123456789' TO MINUTE)",
    "CEIL(TIMESTAMP '2021-04-13 20:12:11.123456789' TO HOUR)",
    "DATE_FORMAT(TIMESTAMP '2021-04-13 20:12:11.123456789', 'yyyy-MM-dd HH:mm:ss.SSSSSSSSS')",
    "DATE_FORMAT(TIMESTAMP '2021-04-13 20:12:11.123456789', 'SSS n N A')",
    "TO_TIMESTAMP('2021-04-13 20:12:11.123456789', 'yyyy-MM-dd HH:mm:ss.SSSSSSSSS')",
    "TO_TIMESTAMP('2021-04-13 20:12:11.123456789')",
    "COALESCE(CAST(NULL AS TIMESTAMP(9)), TIMESTAMP '2021-04-13 20:12:11.123456789')",
    "GREATEST(TIMESTAMP '2021-04-13 20:12:11.123456789', TIMESTAMP '2021-04-13 20:12:11.123456788')",
    "CASE WHEN TRUE THEN TIMESTAMP '2021-04-13 20:12:11.123456789' ELSE TIMESTAMP '2021-04-13 20:12:11' END",
    "JSON_STRING(TIMESTAMP '2021-04-13 20:12:11.123456789')",
    "JSON_OBJECT('t' VALUE TIMESTAMP '2021-04-13 20:12:11.123')",
    "JSON_OBJECT('t' VALUE CAST(TIMESTAMP '2021-04-13 20:12:11.123' AS TIMESTAMP_LTZ(3)))",
    "JSON_STRING(ARRAY[1, 2])",
    "JSON_STRING(ROW(1, 'a'))",
    "JSON_STRING(MAP['a', 1])",
    "CAST(INTERVAL '1' DAY AS STRING)",
    "CAST(INTERVAL '14' MONTH AS STRING)",
    "CAST(ARRAY[ROW(1, CAST(NULL AS STRING))] AS STRING)",
    "CAST(MAP['a', CAST(NULL AS INT)] AS STRING)",
    "CAST(ARRAY[X'4142'] AS STRING)",
    "CAST(ROW(X'4142', CAST(1.1 AS FLOAT), TIME '10:00:00.5') AS STRING)",
    "ARRAY_JOIN(ARRAY['a', 'b'], '-')",
    "ARRAY_CONTAINS(ARRAY[CAST(0.1 AS FLOAT)], CAST(0.1 AS FLOAT))",
    "ARRAY_MAX(ARRAY[CAST(0.1 AS FLOAT), CAST(0.2 AS FLOAT)])",
    "ARRAY_DISTINCT(ARRAY[TIMESTAMP '2021-04-13 20:12:11.123456789', TIMESTAMP '2021-04-13 20:12:11.123456788'])",
]
EXPRESSIONS = [
    *(cast for data_type, values in _SCALARS.items() for cast in _casts(data_type, *values)),
    *_LITERALS,
    *_NESTED,
    *_OPERATIONS,
]

#: The rows of a table of numbers. Operations on them are computed by the runtime, those on literals by the planner.
NUMBER_COLUMNS = "f FLOAT, g FLOAT, d DOUBLE, i INT, l BIGINT, c DECIMAL(5, 2), s STRING"
NUMBERS = (
    "1.1,2.2,2.2,1,10,2.20,1.1",
    "0.1,3.0,0.1,3,7,0.10,-0.0",
    "16777216,1,1.0E10,1,16777217,1.00,NaN",
    "3.4028235E38,10,1.0E300,-2,2,5.00,Infinity",
    "-1.15,0.3,-2.5,0,-5,-1.15,4.9E-324",
    "0.7,0.1,0.7,7,3,0.70,2.5",
)
NUMBER_EXPRESSIONS = [
    *("f + g", "f - g", "f * g", "f / g", "-f", "f + i", "f * l", "f / 3", "f + 1", "f + d", "d + f", "f * d", "d * f"),
    *("f / d", "d / f", "f - d", "f + c", "c + f", "f * c", "d * c", "c * d", "f * 2.2", "f + 2.2", "d + 2.2"),
    *("f + CAST(0.1 AS FLOAT)", "f * 1e0", "ABS(f)", "CEIL(f)", "FLOOR(f)", "ROUND(f, 1)", "ROUND(d, 1)", "SIGN(f)"),
    *("SIGN(d)", "SQRT(g)", "POWER(f, 2)", "EXP(g)", "LN(g)", "SIN(f)"),
    *("f = 0.1", "f = d", "d = f", "f <> d", "f < d", "f > d", "f <= d", "f >= d", "f = c", "c = f", "f > c", "f < c"),
    *("d = 0.1", "d = c", "f IN (0.1, 1.1)", "d IN (0.1, 2.2)", "f BETWEEN 0.1 AND 1.1", "f = CAST(0.1 AS FLOAT)"),
    *("f = CAST(0.1 AS DOUBLE)", "f = l", "l = f", "l > f", "f = i", "f IS DISTINCT FROM d", "NULLIF(f, g)"),
    *("CASE WHEN i > 0 THEN f ELSE i END", "CASE WHEN i > 0 THEN f ELSE d END", "CASE WHEN i > 0 THEN d ELSE f END"),
    *("CASE WHEN i > 0 THEN f ELSE c END", "COALESCE(f, g)", "COALESCE(f, d)", "COALESCE(d, f)", "IFNULL(f, g)"),
    *("GREATEST(f, g)", "LEAST(f, g)", "GREATEST(f, d)", "CAST(f AS DOUBLE)", "CAST(d AS FLOAT)", "CAST(f AS INT)"),
    *("CAST(f AS BIGINT)", "CAST(f AS DECIMAL(38, 10))", "CAST(d AS STRING)", "CAST(f AS STRING)", "CAST(c AS FLOAT)"),
    *("CAST(l AS FLOAT)", "CAST(c AS DOUBLE)", "CAST(s AS FLOAT)", "CAST(s AS DOUBLE)", "CAST(f AS BOOLEAN)"),
    *("CAST(s AS FLOAT) > 1", "CAST(s AS DOUBLE) < 0", "JSON_STRING(f)"),
    *("JSON_OBJECT('x' VALUE f)", "ARRAY[f, g]", "ARRAY_CONTAINS(ARRAY[f, g], f)", "ARRAY_MAX(ARRAY[f, g])"),
]


def streams(types: Any, row: Any) -> list[tuple[str, Any, Any]]:
    """Return (description, type, record) for typed records; `types` is `Types`, `row` is `Row` of either library.

    Byte arrays that are not inside of another record are left out: Flink prints their address."""
    day, moment = datetime.date(2024, 1, 2), datetime.datetime(2024, 1, 2, 3, 4, 5, 678000)  # noqa: DTZ001
    noon = datetime.time(10, 0, 0, 120000)
    pairs: list[tuple[Any, list[Any]]] = [
        (types.STRING(), ["a", "", "a b"]),
        (types.BOOLEAN(), [True, False]),
        (types.BYTE(), [-1]),
        (types.SHORT(), [300]),
        (types.INT(), [-5]),
        (types.LONG(), [1 << 40]),
        (types.FLOAT(), [1.1, 130.1, 1e10, 0.0, 1e-5, float("nan"), float("inf")]),
        (types.DOUBLE(), [1.1, 1e7, 1e-4, -0.0, 123456789.125, float("-inf")]),
        (types.BIG_DEC(), [Decimal("1.50"), Decimal("0E-10"), Decimal("1E+3"), Decimal("0.0000001")]),
        (types.SQL_DATE(), [day]),
        (types.SQL_TIME(), [noon, datetime.time(1, 2, 3)]),
        (types.SQL_TIMESTAMP(), [moment, moment.replace(microsecond=0), moment.replace(microsecond=4000)]),
        (types.LIST(types.FLOAT()), [[1.1, 2.0]]),
        (types.LIST(types.STRING()), [["a", "b"], []]),
        (types.MAP(types.STRING(), types.FLOAT()), [{"a": 1.1}]),
        (types.MAP(types.STRING(), types.SQL_TIMESTAMP()), [{"a": moment}]),
        (types.TUPLE([types.STRING(), types.FLOAT()]), [("a", 1.1)]),
        (types.TUPLE([types.SQL_TIMESTAMP(), types.SQL_TIME(), types.SQL_DATE()]), [(moment, noon, day)]),
        (types.TUPLE([types.TUPLE([types.INT(), types.DOUBLE()]), types.BOOLEAN()]), [((1, 1e10), True)]),
        (types.TUPLE([types.LIST(types.FLOAT()), types.MAP(types.STRING(), types.INT())]), [([1.1], {"a": 1})]),
        (types.TUPLE([types.ROW([types.INT(), types.FLOAT()])]), [(row(1, 1.1),)]),
        (types.TUPLE([types.PRIMITIVE_ARRAY(types.BYTE())]), [(b"\n\xff",)]),
        (types.ROW([types.INT(), types.STRING()]), [row(1, "a"), row(1, None)]),
        (types.ROW([types.FLOAT(), types.SQL_TIMESTAMP()]), [row(1.1, moment)]),
        (types.ROW([types.LIST(types.FLOAT()), types.BOOLEAN()]), [row([1.1], True)]),
        (types.ROW([types.ROW([types.INT(), types.STRING()])]), [row(row(1, "a"))]),
        (types.ROW([types.PRIMITIVE_ARRAY(types.BYTE())]), [row(b"\n\xff")]),
        (types.ROW_NAMED(["a", "b"], [types.INT(), types.DOUBLE()]), [row(1, 1e10)]),
        (types.PICKLED_BYTE_ARRAY(), [1.1, moment, (1, "a"), [1.5], {"a": True}, None]),
    ]
    return [
        (f"{type_info} {index}", type_info, record)
        for type_info, records in pairs
        for index, record in enumerate(records)
    ]
