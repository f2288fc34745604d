"""The parser: every text is a tree or a SqlError with an offset; errors have a hint."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.sql.errors import SqlError
from millstream.sql.syntax import parse_expression, parse_query, parse_statement, parse_statements, parse_type
from millstream.sql.syntax.cursor import RESERVED

WORDS = sorted(
    {
        *RESERVED,
        *(
            "SELECT a FROM t",
            "WITH q AS (",
            "CREATE TABLE t (",
            "WATERMARK FOR ts AS",
            "INTERVAL '1' DAY",
            "PRIMARY KEY",
        ),
        *(
            "TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE)",
            "MATCH_RECOGNIZE (",
            "PATTERN (A B+ C)",
            "ROW<a INT>",
        ),
        *("GROUP BY", "ORDER BY", "OVER (", "ROWS BETWEEN", "UNBOUNDED PRECEDING", "CAST(", "ARRAY[1]", "MAP['a', 1]"),
        *(
            "(",
            ")",
            ",",
            ".",
            "*",
            "+",
            "-",
            "/*+",
            "*/",
            "--x",
            "'",
            "`",
            "''",
            "1",
            "1.5e3",
            "a",
            "b.c",
            ";",
            "=",
            "<>",
        ),
        *("SHOW", "DROP", "ALTER TABLE t", "EXPLAIN", "SET 'k' = 'v'", "INSERT INTO", "BEGIN STATEMENT SET;", "END"),
        *("JSON_VALUE(", "TRIM(", "EXTRACT(", "CASE WHEN", "é", "\x00", '"', "$", "{", "}"),
    }
)
PARSERS = (parse_statement, parse_statements, parse_query, parse_expression, parse_type)


def find_error(parse: object, text: str) -> SqlError | None:
    try:
        parse(text)  # type: ignore[operator]
    except SqlError as problem:
        return problem
    return None


@settings(max_examples=300)
@given(st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join), st.sampled_from(PARSERS))
def test_words_in_any_order_are_a_tree_or_an_error_with_an_offset(text: str, parse: object) -> None:
    problem = find_error(parse, text)
    if problem is not None:
        assert problem.at is not None
        assert 0 <= problem.at <= len(text)
        assert "^" in problem.message


@settings(max_examples=300)
@given(st.text(max_size=60), st.sampled_from(PARSERS))
def test_any_text_is_a_tree_or_an_error(text: str, parse: object) -> None:
    problem = find_error(parse, text)
    assert problem is None or problem.at is not None


@pytest.mark.parametrize("nested", ["(", "NOT ", "-", "CASE WHEN ", "ARRAY[", "f("])
def test_deep_nesting_is_refused_before_pythons_recursion_limit(nested: str) -> None:
    with pytest.raises(SqlError):
        parse_expression(nested * 5000 + "1")


@given(st.text(min_size=1, max_size=20).filter(lambda text: "\x00" not in text))
def test_identifiers_in_backticks_and_strings_in_quotes_can_contain_any_text(text: str) -> None:
    quoted = "`" + text.replace("`", "``") + "`"
    literal = "'" + text.replace("'", "''") + "'"
    query = parse_query(f"SELECT {quoted}, {literal}")
    (name, _), (constant, _) = query.body.items  # type: ignore[attr-defined]
    assert name.parts == (text,)
    assert constant.value == text


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        ("SELECT FROM t", 7, "reserved word"),
        ("SELECT a, FROM t", 10, "remove the comma"),
        ("SELECT a FROM t GROUP a", 22, "unexpected 'a': expected BY"),
        ("CREATE TABLE t (a INT,)", 22, "remove the comma"),
        ("SELEC 1", 0, "did you mean 'SELECT'"),
        ("SELECT a FROM t WHERE", 21, "unexpected end of statement: expected an expression"),
        ('SELECT "a"', 7, "backticks"),
        ("CREATE TABLE t (a INTT)", 18, "did you mean 'INT'"),
        ("SELECT 'a", 7, "not closed"),
        ("CREATE TABLE t (a INT, PRIMARY KEY (a))", 38, "NOT ENFORCED"),
    ],
)
def test_an_error_has_an_offset_and_a_hint(text: str, offset: int, message: str) -> None:
    with pytest.raises(SqlError) as caught:
        parse_statement(text)
    assert caught.value.at == offset
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("type_text", "printed"),
    [
        ("VARCHAR", "STRING"),
        ("CHARACTER VARYING(4)", "VARCHAR(4)"),
        ("CHAR VARYING", "STRING"),
        ("CHARACTER", "CHAR(1)"),
        ("VARBINARY", "BYTES"),
        ("BINARY VARYING(3)", "VARBINARY(3)"),
        ("ROW<a INT 'it''s'>", "ROW<`a` INT 'it''s'>"),
    ],
)
def test_a_type_has_all_names_of_flink(type_text: str, printed: str) -> None:
    assert str(parse_type(type_text)) == printed
    assert parse_type(printed) == parse_type(type_text)


@pytest.mark.parametrize("type_text", ["INTERVAL HOUR TO DAY", "INTERVAL YEAR TO DAY", "INTERVAL DAY TO DAY"])
def test_an_interval_must_go_from_a_larger_to_a_smaller_unit(type_text: str) -> None:
    with pytest.raises(SqlError, match=f"{type_text} is not a valid type"):
        parse_type(type_text)
