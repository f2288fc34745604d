"""The grammar of expressions: precedence, predicates, literals and calls."""

from decimal import Decimal

import pytest

from millstream.sql.errors import SqlSyntaxError
from millstream.sql.syntax import parse_expression, parse_type
from millstream.sql.syntax import tree as s


def show(node: object) -> str:
    """Return an expression with parentheses around each call, which show the precedence."""
    match node:
        case s.Call(name=name, args=args):
            return f"({' '.join((name, *map(show, args)))})"
        case s.Name(parts=parts):
            return ".".join(parts)
        case s.Literal(value=value):
            return repr(value)
        case s.Symbol(word=word):
            return word
        case s.ElementAccess(operand=operand, index=index):
            return f"{show(operand)}[{show(index)}]"
        case s.FieldAccess(operand=operand, name=name):
            return f"{show(operand)}.{name}"
        case s.In(operand=operand, items=items, negated=negated):
            return f"({'NOT IN' if negated else 'IN'} {' '.join(map(show, (operand, *items)))})"
        case s.NamedArgument(name=name, value=value):
            return f"{name}=>{show(value)}"
    return repr(node)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a OR b AND NOT c", "(OR a (AND b (NOT c)))"),
        ("a = b + c * -d", "(= a (+ b (* c (NEGATE d))))"),
        ("a - b - c", "(- (- a b) c)"),
        ("-1", "-1"),
        ("a != b", "(<> a b)"),
        ("a || b LIKE c ESCAPE 'x'", "(LIKE (|| a b) c 'x')"),
        ("a NOT LIKE b", "(NOT (LIKE a b))"),
        ("a SIMILAR TO b", "(SIMILAR TO a b)"),
        ("a BETWEEN 1 AND 2 AND b", "(AND (BETWEEN a 1 2) b)"),
        ("a NOT BETWEEN SYMMETRIC 1 AND 2", "(NOT (BETWEEN SYMMETRIC a 1 2))"),
        ("a NOT IN (1, 2)", "(NOT IN a 1 2)"),
        ("a IS NOT NULL = TRUE", "(= (IS NOT NULL a) True)"),
        ("a IS DISTINCT FROM b", "(IS DISTINCT FROM a b)"),
        ("a IS JSON OBJECT", "(IS JSON a OBJECT)"),
        ("f(a)[1].b", "(F a)[1].b"),
        ("(a, b)", "(ROW a b)"),
        ("ARRAY[1, 2]", "(ARRAY VALUE 1 2)"),
        ("'a' 'b'", "'ab'"),
        ("X'00ff'", r"b'\x00\xff'"),
        ("DATE '2020-01-01'", "(DATE LITERAL '2020-01-01')"),
        ("date", "date"),
        ("CURRENT_DATE", "(CURRENT_DATE)"),
        ("LEFT(a, 1)", "(LEFT a 1)"),
        ("f(x => 1, y => a)", "(F x=>1 y=>a)"),
        ("db.f(a)", "(f a)"),
    ],
)
def test_operators_bind_as_in_flink(text: str, tree: str) -> None:
    assert show(parse_expression(text)) == tree


@pytest.mark.parametrize(
    ("text", "value"), [("12", 12), ("1.50", Decimal("1.50")), ("1e2", 100.0), ("NULL", None), ("FALSE", False)]
)
def test_a_literal_has_the_python_type_of_its_notation(text: str, value: object) -> None:
    literal = parse_expression(text)
    assert isinstance(literal, s.Literal)
    assert (literal.value, type(literal.value)) == (value, type(value))


def test_a_long_chain_is_a_balanced_tree() -> None:
    def depth(node: s.Expr) -> int:
        return 1 + max(map(depth, node.args)) if isinstance(node, s.Call) else 0

    assert depth(parse_expression(" OR ".join(f"a{i}" for i in range(1000)))) == 10


def test_case_cast_and_intervals() -> None:
    case = parse_expression("CASE a WHEN 1 THEN b ELSE c END")
    assert case == s.Case(0, s.Name(0, ("a",)), ((s.Literal(0, 1), s.Name(0, ("b",))),), s.Name(0, ("c",)))
    assert parse_expression("TRY_CAST(a AS INT)") == s.Cast(0, s.Name(0, ("a",)), parse_type("INT"), safe=True)
    interval = parse_expression("INTERVAL -'1 2' DAYS(3) TO HOUR")
    assert interval == s.IntervalLiteral(0, "1 2", "DAY", "HOUR", negative=True, precision=3)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("EXTRACT(DAY FROM a)", "(EXTRACT DAY a)"),
        ("FLOOR(a TO MONTHS)", "(FLOOR a MONTH)"),
        ("CEILING(a)", "(CEIL a)"),
        ("TIMESTAMPADD(SQLTSI_DAY, 1, a)", "(TIMESTAMPADD DAY 1 a)"),
        ("TRIM(a)", "(TRIM BOTH ' ' a)"),
        ("TRIM(LEADING 'x' FROM a)", "(TRIM LEADING 'x' a)"),
        ("TRIM(FROM a)", "(TRIM BOTH ' ' a)"),
        ("SUBSTRING(a FROM 1 FOR 2)", "(SUBSTRING a 1 2)"),
        ("SUBSTRING(a, 1)", "(SUBSTRING a 1)"),
        ("POSITION('x' IN a)", "(POSITION 'x' a)"),
        ("OVERLAY(a PLACING b FROM 1)", "(OVERLAY a b 1)"),
        ("JSON_VALUE(a, '$' DEFAULT 1 ON EMPTY ERROR ON ERROR)", "(JSON_VALUE a '$' ON EMPTY=>1 ON ERROR=>ERROR)"),
        ("JSON_QUERY(a, '$' WITH WRAPPER)", "(JSON_QUERY a '$' WITH WRAPPER)"),
        ("JSON_OBJECT(KEY 'a' VALUE b, 'c': d ABSENT ON NULL)", "(JSON_OBJECT ABSENT 'a' b 'c' d)"),
        ("JSON_OBJECT(KEY ',' VALUE b)", "(JSON_OBJECT NULL ',' b)"),
        ("JSON_ARRAY()", "(JSON_ARRAY ABSENT)"),
        ("JSON_ARRAYAGG(a NULL ON NULL)", "(JSON_ARRAYAGG a NULL)"),
    ],
)
def test_functions_with_a_syntax_of_their_own_become_plain_calls(text: str, tree: str) -> None:
    assert show(parse_expression(text)) == tree


def test_clauses_after_a_call_belong_to_it() -> None:
    call = parse_expression("COUNT(DISTINCT a) FILTER (WHERE b) OVER (PARTITION BY c ORDER BY d DESC ROWS 2 PRECEDING)")
    assert isinstance(call, s.Call)
    assert (call.distinct, call.filter) == (True, s.Name(0, ("b",)))
    assert call.over is not None
    assert call.over.order == (s.OrderItem(0, s.Name(0, ("d",)), ascending=False),)
    assert call.over.lower == s.FrameBound(0, "OFFSET", -1, s.Literal(0, 2))
    percentile = parse_expression("PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY a NULLS LAST)")
    assert isinstance(percentile, s.Call)
    assert percentile.order == (s.OrderItem(0, s.Name(0, ("a",)), nulls_first=False),)
    last = parse_expression("LAST_VALUE(a) IGNORE NULLS")
    assert isinstance(last, s.Call)
    assert last.nulls == "IGNORE"


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("a +", 3, "unexpected end of statement: expected an expression"),
        ("a b", 2, "unexpected 'b': expected the end of the statement"),
        ("CASE a END", 7, "unexpected 'END': expected WHEN"),
        ("a IS x", 5, "expected NULL, TRUE, FALSE, UNKNOWN, JSON or DISTINCT FROM"),
        ("a < ALL (SELECT 1)", 2, "< ALL is not supported"),
        ("EXTRACT(x FROM a)", 8, "expected a unit of time, such as MINUTE"),
        ("INTERVAL a DAY", 9, "expected the length of the interval in quotes"),
        ("SUM(a) OVER (ROWS 1)", 19, "expected PRECEDING or FOLLOWING"),
        ("JSON_QUERY(a, '$' EMPTY ON ERROR)", 24, "expected ARRAY or OBJECT"),
    ],
)
def test_an_error_names_the_expected_token(text: str, at: int, message: str) -> None:
    with pytest.raises(SqlSyntaxError, match=message) as caught:
        parse_expression(text)
    assert caught.value.at == at
