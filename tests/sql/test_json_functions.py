"""JSON functions have the results that Flink 2.3 documents: modes of paths, wildcards, wrappers, sorted keys."""

import pytest

from millstream.sql.catalog.catalog import Catalogs
from millstream.sql.errors import SqlError
from millstream.sql.evaluation.evaluate import EvaluationFailed, evaluate_constant
from millstream.sql.logical.bind.expressions import ExpressionBinder, Session
from millstream.sql.logical.bind.scope import Scope
from millstream.sql.syntax import parse_expression

OBJECTS = """'{"a":[{"c":null},{"c":"c2"}]}'"""
SCALAR = """'{ "a": "[1,2]", "b": [1,2]}'"""
ITEMS = """'{"items": [{"itemId":1234, "count":10}, null, [1, "x"], true, 1.50]}'"""


def evaluate(sql: str) -> object:
    return evaluate_constant(ExpressionBinder(Session(Catalogs()), Scope()).bind(parse_expression(sql)))


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        (f"JSON_QUERY({SCALAR}, '$.b')", "[1,2]"),
        (f"JSON_QUERY({SCALAR}, '$.b' RETURNING ARRAY<STRING>)", ("1", "2")),
        (f"JSON_QUERY({SCALAR}, '$.b' RETURNING STRING WITH CONDITIONAL WRAPPER)", "[1,2]"),
        (f"JSON_QUERY({SCALAR}, '$.a')", None),
        (f"JSON_QUERY({SCALAR}, '$.a' RETURNING ARRAY<STRING>)", None),
        (f"JSON_QUERY({SCALAR}, '$.a' WITH CONDITIONAL WRAPPER)", '["[1,2]"]'),
        (f"JSON_QUERY({SCALAR}, '$.a' RETURNING ARRAY<STRING> WITH CONDITIONAL WRAPPER)", ("[1,2]",)),
        (f"JSON_QUERY({SCALAR}, '$.a' RETURNING ARRAY<STRING> WITHOUT WRAPPER EMPTY ARRAY ON ERROR)", ()),
        (f"JSON_QUERY({SCALAR}, 'lax $.a' RETURNING ARRAY<STRING> EMPTY ARRAY ON EMPTY)", ()),
        (f"JSON_QUERY({OBJECTS}, 'lax $.a[*].c' RETURNING ARRAY<STRING> ERROR ON ERROR ERROR ON EMPTY)", (None, "c2")),
        ("""JSON_QUERY('{"a":[{"c":"c1"},{"c":"c2"}]}', 'lax $.a[*].c')""", '["c1","c2"]'),
        (
            f"JSON_QUERY({ITEMS}, '$.items' RETURNING ARRAY<STRING>)",
            ('{"count":10,"itemId":1234}', None, '[1,"x"]', "true", "1.50"),
        ),
        ("JSON_QUERY('[1, 2]', '$' WITH UNCONDITIONAL ARRAY WRAPPER)", "[[1,2]]"),
        ("JSON_QUERY('{}', '$' WITH CONDITIONAL ARRAY WRAPPER)", "[{}]"),
        ("JSON_QUERY('1', '$')", None),
        ("JSON_QUERY('1', '$' WITH CONDITIONAL ARRAY WRAPPER)", "[1]"),
        ("JSON_QUERY('1', 'lax $' EMPTY OBJECT ON EMPTY ERROR ON ERROR)", "{}"),
        ("JSON_QUERY('{}', 'lax $.invalid' EMPTY OBJECT ON EMPTY)", "{}"),
        ("JSON_QUERY('{}', 'strict $.invalid' EMPTY ARRAY ON ERROR)", "[]"),
        ("JSON_QUERY('no', 'lax $' EMPTY ARRAY ON EMPTY ERROR ON ERROR)", "[]"),
        ("JSON_QUERY('no', '$' EMPTY ARRAY ON ERROR ERROR ON EMPTY)", "[]"),
        ("""JSON_QUERY('{"b":{"z":1.10,"y":1e2},"a":2}', '$')""", '{"a":2,"b":{"y":1E+2,"z":1.10}}'),
    ],
)
def test_json_query(sql: str, value: object) -> None:
    assert evaluate(sql) == value


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("""JSON_VALUE('{"longBalance":123456789.987654321}', '$.longBalance')""", "123456789.987654321"),
        ("""JSON_VALUE('{"a":null}', '$.a' DEFAULT 'empty' ON EMPTY DEFAULT 'error' ON ERROR)""", "error"),
        ("""JSON_VALUE('{"a":null}', 'LAX $.a' DEFAULT 'empty' ON EMPTY DEFAULT 'error' ON ERROR)""", "empty"),
        ("""JSON_VALUE('{"a":{}}', '$.a' DEFAULT 'empty' ON EMPTY DEFAULT 'error' ON ERROR)""", "error"),
        ("""JSON_VALUE('{"a":{}}', 'lax $.a' DEFAULT 'empty' ON EMPTY DEFAULT 'error' ON ERROR)""", "empty"),
        ("JSON_VALUE('no', 'lax $' DEFAULT 'empty' ON EMPTY DEFAULT 'error' ON ERROR)", "empty"),
        ("JSON_VALUE('NaN', 'strict $' DEFAULT 'empty' ON EMPTY DEFAULT 'error' ON ERROR)", "error"),
        ("""JSON_VALUE('{"contains blank":"right"}', 'strict $.[''contains blank'']')""", "right"),
        ("""JSON_EXISTS('{"a":null}', 'lax $.a')""", False),
        ("""JSON_EXISTS('{"a":[]}', '$.a[*]')""", True),
        ("""JSON_EXISTS('{}', '$.a[*]' UNKNOWN ON ERROR)""", None),
        ("JSON_EXISTS('no', 'lax $' UNKNOWN ON ERROR)", False),
        ("JSON_EXISTS('no', 'strict $' UNKNOWN ON ERROR)", None),
    ],
)
def test_json_value_and_json_exists(sql: str, value: object) -> None:
    assert evaluate(sql) == value


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("JSON_OBJECT('outer' VALUE 1, 'nested' VALUE JSON_OBJECT('z' VALUE 1, 'y' VALUE 2))",
         '{"nested":{"y":2,"z":1},"outer":1}'),
        ("JSON_OBJECT('a' VALUE 1, 'a' VALUE 2)", '{"a":2}'),
        ("""JSON_OBJECT('K' VALUE JSON('{"z": 1.50, "a": [1, 2]}'))""", '{"K":{"a":[1,2],"z":1.50}}'),
        ("JSON_OBJECT('K' VALUE JSON('   '))", '{"K":null}'),
        ("JSON_ARRAY(JSON('') NULL ON NULL)", "[null]"),
        ("JSON_STRING(MAP['z', 1, 'a', 2])", '{"a":2,"z":1}'),
        ("JSON_STRING(CAST(ROW(1, 2) AS ROW<z INT, a INT>))", '{"a":2,"z":1}'),
    ],
)  # fmt: skip
def test_keys_are_sorted(sql: str, value: str) -> None:
    assert evaluate(sql) == value


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (f"JSON_QUERY({SCALAR}, '$.b' RETURNING ARRAY<INT>)", "JSON_QUERY cannot return ARRAY<INT>"),
        (f"JSON_QUERY({SCALAR}, '$.a' RETURNING ARRAY<STRING> EMPTY OBJECT ON ERROR)", "cannot return an empty object"),
        (f"JSON_QUERY({SCALAR}, '$.a' RETURNING ARRAY<STRING> EMPTY OBJECT ON EMPTY)", "cannot return an empty object"),
        (f"JSON_QUERY({SCALAR}, '$.a' RETURNING ARRAY<STRING> ERROR ON ERROR)", "failed"),
        (f"JSON_QUERY({SCALAR}, 'lax $.c' ERROR ON EMPTY)", "is empty"),
    ],
)
def test_what_json_query_refuses(sql: str, message: str) -> None:
    with pytest.raises((SqlError, EvaluationFailed), match=message):
        evaluate(sql)
