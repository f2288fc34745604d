"""The cursor: accepted tokens, expected tokens, and errors."""

import pytest

from millstream.sql.errors import SqlSyntaxError
from millstream.sql.syntax.cursor import MAX_DEPTH, Cursor


def test_accept_moves_only_if_all_keys_are_next() -> None:
    cursor = Cursor("ORDER BY a")
    assert not cursor.accept("ORDER", "x")
    assert cursor.accept("ORDER", "BY")
    assert cursor.parse_name() == "a"
    assert cursor.is_at_end


def test_a_key_is_not_found_in_quotes() -> None:
    cursor = Cursor("`ORDER` '('")
    assert not cursor.is_next("ORDER")
    cursor.advance()
    assert not cursor.is_any("(", "x")


def test_the_cursor_does_not_pass_the_end() -> None:
    cursor = Cursor("a")
    cursor.advance()
    assert cursor.advance().type == cursor.advance().type == cursor.peek(5).type == "end"


def test_rewind_goes_back_to_a_mark() -> None:
    cursor = Cursor("a b c")
    cursor.advance()
    mark = cursor.mark()
    cursor.advance()
    assert [token.text for token in cursor.tokens_between(mark, cursor.mark())] == ["b"]
    cursor.rewind(mark)
    assert cursor.token.text == "b"


def test_skipping_ends_before_the_semicolon() -> None:
    cursor = Cursor("a 'b' ; c")
    assert cursor.skip_statement() == "a 'b' "
    assert cursor.accept(";")


@pytest.mark.parametrize("text", ["((SELECT 1))", "WITH q", "(VALUES 1)"])
def test_a_query_is_recognized_after_parentheses(text: str) -> None:
    assert Cursor(text).is_query_next()
    assert not Cursor(f"`{text}`").is_query_next()


def test_a_name_cannot_be_reserved_except_after_a_dot() -> None:
    assert Cursor("a.select.b").parse_path() == ("a", "select", "b")
    with pytest.raises(SqlSyntaxError, match="unexpected 'select': expected a name") as caught:
        Cursor("select.b").parse_path()
    assert caught.value.hint == "SELECT is a reserved word: write `select` in backticks to use it as a name"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda cursor: cursor.expect("X", "("), r"unexpected '\+': expected '\('"),
        (lambda cursor: cursor.expect("X", "BY"), r"unexpected '\+': expected BY"),
        (lambda cursor: cursor.expect_any("A", "B", "C"), "unexpected 'X': expected A, B or C"),
        (lambda cursor: cursor.parse_string(), "expected a string in single quotes"),
        (lambda cursor: cursor.parse_integer(), "expected an integer"),
    ],
)
def test_an_error_names_the_actual_and_the_expected_token(call, message) -> None:
    with pytest.raises(SqlSyntaxError, match=message):
        call(Cursor("X +"))


def test_an_error_at_the_end_points_after_the_text() -> None:
    with pytest.raises(SqlSyntaxError, match=r"^unexpected end of statement: expected a name") as caught:
        Cursor("  ").parse_name()
    assert caught.value.at == 2


def test_nesting_has_a_limit() -> None:
    cursor = Cursor("x")

    def nest(levels: int) -> str:
        return cursor.parse_nested(lambda: nest(levels - 1)) if levels else cursor.token.text

    assert nest(MAX_DEPTH) == "x"
    with pytest.raises(SqlSyntaxError, match=f"nested more than {MAX_DEPTH} levels deep"):
        nest(MAX_DEPTH + 1)
