"""Every method and function of expressions is tested, and has the value that Flink's documentation shows."""

from __future__ import annotations

import datetime
import decimal
import inspect
from typing import Any

import pytest

from millstream.table import Bitmap, DataTypes, TableEnvironment
from millstream.table import expressions as e
from millstream.table.expression import (
    Expression,
    JsonExistsOnError,
    JsonQueryWrapper,
    JsonType,
    JsonValueOnEmptyOrError,
    TimeIntervalUnit,
    TimePointUnit,
)
from millstream.table.expressions import JsonOnNull, col, lit

DAY = datetime.date(2024, 2, 29)
AT = datetime.datetime(2024, 2, 29, 13, 5, 7)  # noqa: DTZ001
NUMBERS = lit([3, 1, 2, 1])
LETTERS = lit(["b", "a"])
PAIRS = lit({"a": 1, "b": 2})
TEXT = lit("Hello World")
JSON = lit('{"a": {"b": [1, 2]}, "c": "d"}')

BITS, OTHER_BITS = lit([1, 2, -1]).bitmap_build(), lit([2, 3]).bitmap_build()

VALUES: dict[str, tuple[Expression, Any]] = {
    # bitmaps
    "bitmap_build": (BITS, Bitmap([1, 2, -1])),
    "bitmap_to_bytes": (OTHER_BITS.bitmap_to_bytes(), Bitmap([2, 3]).to_bytes()),
    "bitmap_from_bytes": (lit(Bitmap([7]).to_bytes()).bitmap_from_bytes(), Bitmap([7])),
    "bitmap_to_array": (BITS.bitmap_to_array(), [1, 2, -1]),
    "bitmap_to_string": (BITS.bitmap_to_string(), "{1,2,4294967295}"),
    "bitmap_cardinality": (BITS.bitmap_cardinality(), 3),
    "bitmap_and": (BITS.bitmap_and(OTHER_BITS), Bitmap([2])),
    "bitmap_or": (BITS.bitmap_or(OTHER_BITS), Bitmap([1, 2, 3, -1])),
    "bitmap_xor": (BITS.bitmap_xor(OTHER_BITS), Bitmap([1, 3, -1])),
    "bitmap_andnot": (BITS.bitmap_andnot(OTHER_BITS), Bitmap([1, -1])),
    # operators
    "__abs__": (abs(lit(-3)), 3),
    "__add__": (lit(1) + 2, 3),
    "__radd__": (1 + lit(2), 3),
    "__sub__": (lit(1) - 2, -1),
    "__rsub__": (1 - lit(2), -1),
    "__mul__": (lit(2) * 3, 6),
    "__rmul__": (2 * lit(3), 6),
    "__truediv__": (lit(7) / 2, 3),
    "__rtruediv__": (7 / lit(2), 3),
    "__mod__": (lit(7) % 4, 3),
    "__rmod__": (7 % lit(4), 3),
    "__pow__": (lit(2) ** 3, 8.0),
    "__rpow__": (2 ** lit(3), 8.0),
    "__neg__": (-lit(2), -2),
    "__eq__": (lit(1) == 1, True),
    "__ne__": (lit(1) != 1, False),
    "__lt__": (lit(1) < 2, True),
    "__le__": (lit(2) <= 2, True),
    "__gt__": (lit(1) > 2, False),
    "__ge__": (lit(2) >= 2, True),
    "__and__": (lit(True) & lit(False), False),
    "__rand__": (True & lit(False), False),
    "__or__": (lit(True) | lit(False), True),
    "__ror__": (True | lit(False), True),
    "__invert__": (~lit(True), False),
    "__getitem__": (NUMBERS[1], 3),
    "__getattr__": (col("r").x, 5),
    # conditions
    "between": (lit(2).between(1, 3), True),
    "not_between": (lit(2).not_between(1, 3), False),
    "then": (lit(True).then("y", "n"), "y"),
    "if_null": (e.null_of(DataTypes.INT()).if_null(4), 4),
    "in_": (lit(2).in_(1, 2), True),
    "is_null": (lit(1).is_null, False),
    "is_not_null": (lit(1).is_not_null, True),
    "is_true": (lit(True).is_true, True),
    "is_false": (lit(True).is_false, False),
    "is_not_true": (lit(True).is_not_true, False),
    "is_not_false": (lit(True).is_not_false, True),
    "alias": (lit(1).alias("renamed"), 1),
    "cast": (lit("12").cast(DataTypes.INT()), 12),
    "try_cast": (lit("x").try_cast(DataTypes.INT()), None),
    # numbers
    "abs": (lit(-3).abs, 3),
    "exp": (lit(0).exp, 1.0),
    "log10": (lit(100).log10, 2.0),
    "log2": (lit(8).log2, 3.0),
    "ln": (lit(1).ln, 0.0),
    "log": (lit(8).log(2), 3.0),
    "sqrt": (lit(9).sqrt, 3.0),
    "sign": (lit(-3).sign, -1),
    "sin": (lit(0).sin, 0.0),
    "cos": (lit(0).cos, 1.0),
    "tan": (lit(0).tan, 0.0),
    "cot": (lit(1).cot, pytest.approx(0.6420926159343306)),
    "asin": (lit(0).asin, 0.0),
    "acos": (lit(1).acos, 0.0),
    "atan": (lit(0).atan, 0.0),
    "sinh": (lit(0).sinh, 0.0),
    "cosh": (lit(0).cosh, 1.0),
    "tanh": (lit(0).tanh, 0.0),
    "degrees": (lit(0).degrees, 0.0),
    "radians": (lit(0).radians, 0.0),
    "floor": (lit(1.5).floor(), 1.0),
    "ceil": (lit(1.5).ceil(), 2.0),
    "round": (lit(1.256).round(2), 1.26),
    "truncate": (lit(1.256).truncate(2), 1.25),
    "bin": (lit(4).bin, "100"),
    "hex": (lit(255).hex, "FF"),
    "unhex": (lit("4142").unhex, b"AB"),
    # strings
    "char_length": (TEXT.char_length, 11),
    "upper_case": (TEXT.upper_case, "HELLO WORLD"),
    "lower_case": (TEXT.lower_case, "hello world"),
    "init_cap": (lit("hi there").init_cap, "Hi There"),
    "ascii": (lit("A").ascii, 65),
    "chr": (lit(65).chr, "A"),
    "reverse": (lit("abc").reverse, "cba"),
    "concat": (lit("a").concat("b"), "ab"),
    "starts_with": (TEXT.starts_with("He"), True),
    "ends_with": (TEXT.ends_with("ld"), True),
    "substring": (TEXT.substring(2, 3), "ell"),
    "substr": (TEXT.substr(7), "World"),
    "left": (TEXT.left(2), "He"),
    "right": (TEXT.right(2), "ld"),
    "translate": (lit("abc").translate("ab", "xy"), "xyc"),
    "trim": (lit(" a ").trim(), "a"),
    "trim_leading": (lit(" a ").trim_leading(), "a "),
    "trim_trailing": (lit(" a ").trim_trailing(), " a"),
    "ltrim": (lit("xxa").ltrim("x"), "a"),
    "rtrim": (lit("axx").rtrim("x"), "a"),
    "btrim": (lit("xax").btrim("x"), "a"),
    "replace": (lit("aXb").replace("X", "-"), "a-b"),
    "like": (TEXT.like("Hel%"), True),
    "similar": (lit("ab").similar("(a|b)*"), True),
    "position": (lit("lo").position(TEXT), 4),
    "instr": (TEXT.instr("lo"), 4),
    "locate": (lit("o").locate(TEXT, 6), 8),
    "lpad": (lit("a").lpad(3, "-"), "--a"),
    "rpad": (lit("a").rpad(3, "-"), "a--"),
    "overlay": (lit("abcdef").overlay("XY", 2, 3), "aXYef"),
    "regexp": (TEXT.regexp("W.r"), True),
    "regexp_count": (TEXT.regexp_count("o"), 2),
    "regexp_replace": (TEXT.regexp_replace("o", "0"), "Hell0 W0rld"),
    "regexp_extract": (TEXT.regexp_extract("(W)(or)", 2), "or"),
    "regexp_extract_all": (TEXT.regexp_extract_all("(o)", 1), ["o", "o"]),
    "regexp_instr": (TEXT.regexp_instr("W"), 7),
    "regexp_substr": (TEXT.regexp_substr("W.."), "Wor"),
    "repeat": (lit("ab").repeat(2), "abab"),
    "encode": (lit("é").encode("UTF-8"), "é".encode()),
    "decode": (lit("é").encode("UTF-8").decode("UTF-8"), "é"),
    "from_base64": (lit("aGk=").from_base64, "hi"),
    "to_base64": (lit("hi").to_base64, "aGk="),
    "parse_url": (lit("http://h/p?k=v").parse_url("QUERY", "k"), "v"),
    "printf": (lit("%d-%s").printf(1, "a"), "1-a"),
    "url_encode": (lit("a b").url_encode(), "a+b"),
    "url_decode": (lit("a+b").url_decode(), "a b"),
    "split": (lit("a,b").split(","), ["a", "b"]),
    "split_index": (lit("a,b").split_index(",", 1), "b"),
    "str_to_map": (lit("a=1,b=2").str_to_map(), {"a": "1", "b": "2"}),
    "elt": (lit(2).elt("a", "b"), "b"),
    "inet_aton": (lit("127.0.0.1").inet_aton(), 2130706433),
    "inet_ntoa": (lit(2130706433).inet_ntoa(), "127.0.0.1"),
    "md5": (lit("a").md5, "0cc175b9c0f1b6a831c399e269772661"),
    "sha1": (lit("a").sha1, "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"),
    "sha224": (lit("a").sha224.char_length, 56),
    "sha256": (lit("a").sha256.char_length, 64),
    "sha384": (lit("a").sha384.char_length, 96),
    "sha512": (lit("a").sha512.char_length, 128),
    "sha2": (lit("a").sha2(256).char_length, 64),
    # JSON
    "is_json": (JSON.is_json(JsonType.OBJECT), True),
    "json_exists": (JSON.json_exists("$.a.b", JsonExistsOnError.ERROR), True),
    "json_value": (
        JSON.json_value("lax $.z", DataTypes.STRING(), JsonValueOnEmptyOrError.DEFAULT, "none"),
        "none",
    ),
    "json_query": (JSON.json_query("$.a.b", JsonQueryWrapper.WITHOUT_ARRAY), "[1,2]"),
    "json_quote": (lit("a").json_quote(), '"a"'),
    "json_unquote": (lit('"a"').json_unquote(), "a"),
    # times
    "to_date": (lit("2024-02-29").to_date, DAY),
    "to_time": (lit("10:20:30").to_time, datetime.time(10, 20, 30)),
    "to_timestamp": (lit("2024-02-29 13:05:07").to_timestamp, AT),
    "extract": (lit(AT).extract(TimeIntervalUnit.QUARTER), 1),
    **{
        unit: (lit(DAY) + getattr(lit(1), unit), value)
        for unit, value in {
            "year": datetime.date(2025, 2, 28),
            "years": datetime.date(2025, 2, 28),
            "quarter": datetime.date(2024, 5, 29),
            "quarters": datetime.date(2024, 5, 29),
            "month": datetime.date(2024, 3, 29),
            "months": datetime.date(2024, 3, 29),
            "week": datetime.date(2024, 3, 7),
            "weeks": datetime.date(2024, 3, 7),
            "day": datetime.date(2024, 3, 1),
            "days": datetime.date(2024, 3, 1),
        }.items()
    },
    **{
        unit: (lit(AT) + getattr(lit(1), unit), AT + datetime.timedelta(milliseconds=span))
        for unit, span in {
            "hour": 3_600_000,
            "hours": 3_600_000,
            "minute": 60_000,
            "minutes": 60_000,
            "second": 1000,
            "seconds": 1000,
            "milli": 1,
            "millis": 1,
        }.items()
    },
    # collections
    "cardinality": (NUMBERS.cardinality, 4),
    "element": (lit([7]).element, 7),
    "at": (NUMBERS.at(2), 1),
    "get": (col("r").get("x"), 5),
    "array_append": (LETTERS.array_append("c"), ["b", "a", "c"]),
    "array_prepend": (LETTERS.array_prepend("c"), ["c", "b", "a"]),
    "array_concat": (LETTERS.array_concat(LETTERS), ["b", "a", "b", "a"]),
    "array_contains": (NUMBERS.array_contains(2), True),
    "array_distinct": (NUMBERS.array_distinct(), [3, 1, 2]),
    "array_position": (NUMBERS.array_position(2), 3),
    "array_remove": (NUMBERS.array_remove(1), [3, 2]),
    "array_reverse": (NUMBERS.array_reverse(), [1, 2, 1, 3]),
    "array_slice": (NUMBERS.array_slice(2, 3), [1, 2]),
    "array_sort": (NUMBERS.array_sort(), [1, 1, 2, 3]),
    "array_union": (LETTERS.array_union(lit(["c"])), ["b", "a", "c"]),
    "array_except": (NUMBERS.array_except(lit([1])), [3, 2]),
    "array_intersect": (NUMBERS.array_intersect(lit([1, 3])), [3, 1]),
    "array_max": (NUMBERS.array_max(), 3),
    "array_min": (NUMBERS.array_min(), 1),
    "array_join": (LETTERS.array_join("-"), "b-a"),
    "map_keys": (PAIRS.map_keys, ["a", "b"]),
    "map_values": (PAIRS.map_values, [1, 2]),
    "map_entries": (PAIRS.map_entries.cardinality, 2),
    "map_union": (PAIRS.map_union(lit({"c": 3})).cardinality, 3),
    # functions
    "and_": (e.and_(lit(True), lit(True), lit(False)), False),
    "or_": (e.or_(lit(False), lit(True)), True),
    "not_": (e.not_(lit(True)), False),
    "array": (e.array(1, 2), [1, 2]),
    "map_": (e.map_("a", 1), {"a": 1}),
    "map_from_arrays": (e.map_from_arrays(e.array("a"), e.array(1)), {"a": 1}),
    "object_of": (e.object_of("User", "name", "Bob", "age", 42), ("Bob", 42)),
    "object_update": (e.object_of("User", "name", "Bob", "age", 42).object_update("age", 43), ("Bob", 43)),
    "row": (e.row(1, "a"), (1, "a")),
    "atan2": (e.atan2(0, 1), 0.0),
    "coalesce": (e.coalesce(e.null_of(DataTypes.INT()), 2), 2),
    "e.concat": (e.concat("a", "b", "c"), "abc"),
    "concat_ws": (e.concat_ws("-", "a", "b"), "a-b"),
    "convert_tz": (e.convert_tz("1970-01-01 00:00:00", "UTC", "America/Los_Angeles"), "1969-12-31 16:00:00"),
    "current_database": (e.current_database(), "default_database"),
    "date_format": (e.date_format(lit(AT), "yyyy/MM"), "2024/02"),
    "e": (e.e(), pytest.approx(2.718281828459045)),
    "pi": (e.pi(), pytest.approx(3.141592653589793)),
    "from_unixtime": (e.from_unixtime(44), "1970-01-01 00:00:44"),
    "unix_timestamp": (e.unix_timestamp("1970-01-01 00:00:44"), 44),
    "if_then_else": (e.if_then_else(lit(False), 1, 2), 2),
    "json": (e.json_object(JsonOnNull.NULL, "k", e.json('{"a":1}')), '{"k":{"a":1}}'),
    "json_string": (e.json_string(e.array(1, 2)), "[1,2]"),
    "json_object": (e.json_object(JsonOnNull.ABSENT, "k", e.null_of(DataTypes.STRING())), "{}"),
    "json_array": (e.json_array(JsonOnNull.NULL, 1, e.null_of(DataTypes.INT())), "[1,null]"),
    "lit": (lit(1, DataTypes.BIGINT()), 1),
    "e.log": (e.log(8, 2), 3.0),
    "negative": (e.negative(3), -3),
    "null_of": (e.null_of(DataTypes.DATE()), None),
    "temporal_overlaps": (
        e.temporal_overlaps(lit(AT), lit(1).hours, lit(AT) + lit(30).minutes, lit(1).hours),
        True,
    ),
    "timestamp_diff": (e.timestamp_diff(TimePointUnit.HOUR, lit(AT), lit(AT) + lit(1).days), 24),
    "e.to_date": (e.to_date("29/02/2024", "dd/MM/yyyy"), DAY),
    "e.to_timestamp": (e.to_timestamp("2024-02-29 13:05:07"), AT),
    "to_timestamp_ltz": (e.to_timestamp_ltz(lit(0), lit(3)).is_not_null, True),
    "call": (e.call("UPPER", "a"), "A"),
    "call_sql": (e.call_sql("1 + 1"), 2),
    "uuid": (e.uuid().char_length, 36),
    "rand": (e.rand(1) < 1.0, True),
    "rand_integer": (e.rand_integer(10, 1) < 10, True),
    **{
        name: (getattr(e, name)().is_not_null, True)
        for name in ("current_date", "current_time", "current_timestamp", "local_time", "local_timestamp")
    },
}
AGGREGATED: dict[str, tuple[Expression, Any]] = {
    "bitmap_build_agg": (col("n").bitmap_build_agg(), Bitmap([1, 2, 3])),
    "bitmap_build_cardinality_agg": (col("n").bitmap_build_cardinality_agg(), 3),
    "bitmap_and_agg": (e.array(col("n"), 9).bitmap_build().bitmap_and_agg(), Bitmap([9])),
    "bitmap_and_cardinality_agg": (e.array(col("n"), 9).bitmap_build().bitmap_and_cardinality_agg(), 1),
    "bitmap_or_agg": (e.array(col("n"), 9).bitmap_build().bitmap_or_agg(), Bitmap([1, 2, 3, 9])),
    "bitmap_or_cardinality_agg": (e.array(col("n"), 9).bitmap_build().bitmap_or_cardinality_agg(), 4),
    "bitmap_xor_agg": (e.array(col("n"), 2).bitmap_build().bitmap_xor_agg(), Bitmap([1, 2, 3])),
    "bitmap_xor_cardinality_agg": (e.array(col("n"), 2).bitmap_build().bitmap_xor_cardinality_agg(), 3),
    "sum": (col("n").sum, 6),
    "sum0": (col("n").sum0, 6),
    "min": (col("n").min, 1),
    "max": (col("n").max, 3),
    "count": (col("n").count, 3),
    "avg": (col("n").avg, 2),
    "first_value": (col("n").first_value, 1),
    "last_value": (col("n").last_value, 2),
    "stddev_pop": (col("n").cast(DataTypes.DOUBLE()).stddev_pop, pytest.approx(0.816496580927726)),
    "stddev_samp": (col("n").cast(DataTypes.DOUBLE()).stddev_samp, pytest.approx(1.0)),
    "var_pop": (col("n").cast(DataTypes.DOUBLE()).var_pop, pytest.approx(2 / 3)),
    "var_samp": (col("n").cast(DataTypes.DOUBLE()).var_samp, pytest.approx(1.0)),
    "collect": (col("n").collect, {1: 1, 3: 1, 2: 1}),
    "array_agg": (col("n").array_agg, [1, 3, 2]),
    "list_agg": (col("k").list_agg("-"), "a-b-a"),
    "percentile": (col("n").percentile(0.5), 2.0),
    "distinct": (col("k").count.distinct, 2),
    "json_object_agg": (
        e.json_object_agg(JsonOnNull.NULL, col("n").cast(DataTypes.STRING()), col("k")),
        '{"1":"a","2":"a","3":"b"}',
    ),
    "json_array_agg": (e.json_array_agg(JsonOnNull.NULL, col("n")), "[1,3,2]"),
}
ELSEWHERE = {  # tested elsewhere: orders, windows, frames, columns by range, sources
    "asc", "desc", "over", "start", "end", "rowtime", "proctime", "flatten", "as_argument", "col", "range_", "lag",
    "row_interval", "with_columns", "without_columns", "with_all_columns", "current_watermark", "source_watermark",
    "lead", "descriptor",
}  # fmt: skip


def list_public_names(owner: Any) -> set[str]:
    special = {name for cls in type.mro(owner) if cls is not object for name in vars(cls) if name.startswith("__")}
    operators = {name for name in special if callable(getattr(owner, name, None)) and name not in vars(object)}
    return {name for name in dir(owner) if not name.startswith("_")} | (operators & set(VALUES))


def test_every_method_and_function_has_an_example() -> None:
    functions = {
        name for name, function in vars(e).items() if inspect.isfunction(function) and function.__module__ == e.__name__
    }
    named = {name for name in list_public_names(Expression) | functions if not name.startswith("_")}
    examples = {name.removeprefix("e.") for name in (*VALUES, *AGGREGATED)}
    assert named - examples - ELSEWHERE == set()


def simplify(value: Any) -> Any:
    return tuple(value) if type(value).__name__ == "Row" else value


def collect_row(table: Any) -> tuple[Any, ...]:
    with table.execute().collect() as actual:
        return [tuple(row) for row in actual][-1]


def test_expressions_have_their_values(t_env: TableEnvironment) -> None:
    row_type = DataTypes.ROW([DataTypes.FIELD("r", DataTypes.ROW([DataTypes.FIELD("x", DataTypes.INT())]))])
    table = t_env.from_elements([((5,),)], row_type)
    items = [expression.alias(f"c{i}") for i, (expression, _) in enumerate(VALUES.values())]
    actual = dict(zip(VALUES, map(simplify, collect_row(table.select(*items))), strict=True))
    actual = {name: float(value) if isinstance(value, decimal.Decimal) else value for name, value in actual.items()}
    differences = {name: (actual[name], expected) for name, (_, expected) in VALUES.items() if actual[name] != expected}
    assert differences == {}


def test_aggregates_have_their_values(t_env: TableEnvironment) -> None:
    row_type = DataTypes.ROW([DataTypes.FIELD("n", DataTypes.INT()), DataTypes.FIELD("k", DataTypes.STRING())])
    table = t_env.from_elements([(1, "a"), (3, "b"), (2, "a")], row_type)
    items = [expression.alias(f"c{i}") for i, (expression, _) in enumerate(AGGREGATED.values())]
    actual = dict(zip(AGGREGATED, collect_row(table.select(*items)), strict=True))
    assert {
        name: (actual[name], expected) for name, (_, expected) in AGGREGATED.items() if actual[name] != expected
    } == {}
