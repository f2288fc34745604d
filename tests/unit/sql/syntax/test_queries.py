"""The grammar of queries: SELECT, FROM, set operations, hints and MATCH_RECOGNIZE."""

import pytest

from millstream.sql.errors import SqlError
from millstream.sql.syntax import parse_query
from millstream.sql.syntax import tree as s


def name(*parts: str) -> s.Name:
    return s.Name(0, parts)


def select(text: str) -> s.Select:
    body = parse_query(text).body
    assert isinstance(body, s.Select)
    return body


def source(text: str) -> s.Source:
    node = select(f"SELECT * FROM {text}").source
    assert node is not None
    return node


def test_intersect_binds_stronger_than_union() -> None:
    union = parse_query("SELECT 1 UNION ALL SELECT 2 INTERSECT SELECT 3").body
    assert isinstance(union, s.SetOperation)
    assert (union.operator, union.all) == ("UNION", True)
    assert isinstance(union.right.body, s.SetOperation)
    assert (union.right.body.operator, union.right.body.all) == ("INTERSECT", False)


def test_order_and_limit_belong_to_the_whole_query() -> None:
    query = parse_query("SELECT a FROM t UNION SELECT b FROM u ORDER BY 1 DESC LIMIT 5 OFFSET 2")
    assert isinstance(query.body, s.SetOperation)
    assert (query.order, query.limit, query.offset) == ((s.OrderItem(0, s.Literal(0, 1), ascending=False),), 5, 2)


@pytest.mark.parametrize(
    ("text", "limit", "offset"),
    [
        ("LIMIT 3", 3, None),
        ("LIMIT ALL", None, None),
        ("LIMIT 2, 3", 3, 2),
        ("OFFSET 2 ROWS FETCH NEXT 3 ROWS ONLY", 3, 2),
        ("FETCH FIRST ROW ONLY", 1, None),
    ],
)
def test_a_limit_has_several_spellings(text: str, limit: int | None, offset: int | None) -> None:
    query = parse_query(f"SELECT a FROM t {text}")
    assert (query.limit, query.offset) == (limit, offset)


def test_a_limit_around_a_limited_query_keeps_both() -> None:
    query = parse_query("(SELECT a FROM t LIMIT 5) LIMIT 3")
    assert query.limit == 3
    assert isinstance(query.body, s.Select)
    assert isinstance(query.body.source, s.DerivedTable)
    assert query.body.source.query.limit == 5


def test_common_table_expressions() -> None:
    ((cte, columns, query),) = parse_query("WITH q (x) AS (SELECT 1) SELECT x FROM q").ctes
    assert (cte, columns, query) == ("q", ("x",), parse_query("SELECT 1"))


def test_clauses_of_select() -> None:
    node = select("SELECT DISTINCT a AS x, t.* FROM t WHERE b GROUP BY ROLLUP (a, (b, c)), () HAVING d QUALIFY e")
    assert node.items == ((name("a"), "x"), (s.Star(0, ("t",)), None))
    assert (node.distinct, node.where, node.having, node.qualify) == (True, name("b"), name("d"), name("e"))
    assert node.group == (
        s.GroupItem(0, "ROLLUP", ((name("a"),), (name("b"), name("c")))),
        s.GroupItem(0, "SETS", ((),)),
    )


def test_joins_are_left_associative() -> None:
    join = source("a LEFT OUTER JOIN b ON x CROSS JOIN c")
    assert isinstance(join, s.Join)
    assert join.join_type == "CROSS"
    assert join.left == s.Join(0, "LEFT", s.TableName(0, ("a",)), s.TableName(0, ("b",)), name("x"))
    assert source("a NATURAL JOIN b") == s.Join(
        0, "INNER", s.TableName(0, ("a",)), s.TableName(0, ("b",)), natural=True
    )
    assert source("a, b") == s.Join(0, "CROSS", s.TableName(0, ("a",)), s.TableName(0, ("b",)))


def test_all_types_of_sources() -> None:
    query = parse_query("SELECT 1")
    assert source("c.d.t AS x (a, b)") == s.TableName(0, ("c", "d", "t"), "x", ("a", "b"))
    assert source("(SELECT 1) x") == s.DerivedTable(0, query, "x")
    assert source("LATERAL (SELECT 1) x") == s.DerivedTable(0, query, "x", lateral=True)
    assert source("((SELECT 1) AS x)") == s.DerivedTable(0, query, "x")
    assert source("UNNEST(a) WITH ORDINALITY AS x (y, z)") == s.TableFunctionCall(
        0, s.Call(0, "UNNEST", (name("a"),)), "x", ("y", "z"), ordinality=True
    )
    assert source("LATERAL TABLE(f(a)) x") == s.TableFunctionCall(0, s.Call(0, "F", (name("a"),)), "x")
    window = source("TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' DAY)")
    assert isinstance(window, s.TableFunctionCall)
    assert window.call.args[:2] == (s.TableArgument(0, s.TableName(0, ("t",))), s.Descriptor(0, ("ts",)))


@pytest.mark.parametrize("text", ["t FOR SYSTEM_TIME AS OF a.p AS x", "t AS x FOR SYSTEM_TIME AS OF a.p"])
def test_the_alias_of_a_temporal_table_is_before_or_after_the_clause(text: str) -> None:
    assert source(text) == s.TableName(0, ("t",), "x", as_of=name("a", "p"))


def test_hints_of_a_query_and_of_a_table() -> None:
    node = select("SELECT /*+ broadcast(t), STATE_TTL('a' = '1 d') */ * FROM t /*+ OPTIONS('k' = 'v') */")
    assert node.hints == (s.Hint(0, "BROADCAST", ("t",), ()), s.Hint(0, "STATE_TTL", (), (("a", "1 d"),)))
    assert node.source == s.TableName(0, ("t",), hints=(s.Hint(0, "OPTIONS", (), (("k", "v"),)),))


def test_match_recognize() -> None:
    match = source(
        "t MATCH_RECOGNIZE (PARTITION BY a ORDER BY ts MEASURES A.x AS m ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT "
        "ROW PATTERN (A B{2,}? (C | D)*) WITHIN INTERVAL '1' HOUR SUBSET U = (A, B) DEFINE A AS x > 1) AS r"
    )
    assert isinstance(match, s.MatchRecognize)
    assert (match.alias, match.skip, match.all_rows) == ("r", ("TO NEXT ROW", None), False)
    assert match.subsets == (("U", ("A", "B")),)
    a, b, c_or_d = match.pattern.parts
    assert a == s.PatternNode(0, "variable", "A")
    assert (b.type, b.least, b.most, b.greedy) == ("quantified", 2, None, False)
    assert (c_or_d.least, c_or_d.most, c_or_d.greedy) == (0, None, True)
    assert [part.name for part in c_or_d.parts[0].parts] == ["C", "D"]


@pytest.mark.parametrize(
    ("quantifier", "least", "most"),
    [("*", 0, None), ("+", 1, None), ("?", 0, 1), ("{3}", 3, 3), ("{,3}", 0, 3), ("{2,3}", 2, 3), ("{2,}", 2, None)],
)
def test_quantifiers_of_a_row_pattern(quantifier: str, least: int, most: int | None) -> None:
    match = source(f"t MATCH_RECOGNIZE (PATTERN (A{quantifier}))")
    assert isinstance(match, s.MatchRecognize)
    assert (match.pattern.least, match.pattern.most) == (least, most)


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("a", 0, "unexpected 'a': expected SELECT, VALUES or WITH"),
        ("SELECT 1 FROM a LEFT JOIN b", 27, "expected ON or USING"),
        ("SELECT 1 FROM LATERAL t", 22, "expected TABLE. or a query in parentheses"),
        ("SELECT 1 FETCH 3 ROWS ONLY", 15, "unexpected '3': expected FIRST or NEXT"),
        ("SELECT 1 FROM t TABLESAMPLE BERNOULLI (1)", 16, "unexpected 'TABLESAMPLE'"),
        ("WITH RECURSIVE q AS (SELECT 1) SELECT 1", 5, "unexpected 'RECURSIVE'"),
        ("SELECT 1 FROM t MATCH_RECOGNIZE (PATTERN ())", 42, "expected a pattern variable"),
        ("SELECT /*+ a(*) */ 1", 13, "expected an option of the hint"),
    ],
)
def test_an_error_names_the_expected_token(text: str, at: int, message: str) -> None:
    with pytest.raises(SqlError, match=message) as caught:
        parse_query(text)
    assert caught.value.at == at
