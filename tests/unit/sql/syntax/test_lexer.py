"""The lexer: types, texts, keys and offsets of tokens."""

import pytest

from millstream.sql.errors import SqlSyntaxError
from millstream.sql.syntax.lexer import find_word, tokenize


def parts(text: str) -> list[tuple[str, str, str]]:
    return [(token.type, token.text, token.key) for token in tokenize(text)[:-1]]


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("Select", ("word", "Select", "SELECT")),
        ("`a``b`", ("quoted", "a`b", "")),
        ("'it''s'", ("string", "it's", "")),
        (r"U&'\0041\\'", ("string", "A\\", "")),
        ("_UTF16'é'", ("string", "é", "")),
        ("N'it''s'", ("string", "it's", "")),
        (r"u&'\+01F600'", ("string", "\U0001f600", "")),
        ("_UTF16'x'", ("string", "x", "")),
        ("x'0aFF'", ("bytes", "0aFF", "")),
        ("1.5e-3", ("number", "1.5e-3", "1.5e-3")),
        (".5", ("number", ".5", ".5")),
        ("<>", ("op", "<>", "<>")),
        ("=>", ("op", "=>", "=>")),
    ],
)
def test_a_token_has_a_type_a_text_and_a_key(text: str, token: tuple[str, str, str]) -> None:
    assert parts(text) == [token]


def test_white_space_and_comments_are_not_tokens() -> None:
    assert parts("a -- b\n /* c\n */ d") == [("word", "a", "A"), ("word", "d", "D")]


def test_a_hint_has_a_token_at_its_beginning_and_its_end() -> None:
    assert [token_type for token_type, _, _ in parts("/*+ x */")] == ["hint", "word", "hint"]


def test_the_end_of_a_hint_outside_of_a_hint_is_two_operators() -> None:
    assert parts("*/") == [("op", "*", "*"), ("op", "/", "/")]


def test_offsets_of_tokens_are_those_of_the_text() -> None:
    text = "SELECT `a`, 'b''c' FROM t"
    assert [text[token.start : token.end] for token in tokenize(text)] == [
        *("SELECT", "`a`", ",", "'b''c'", "FROM", "t"),
        "",
    ]


@pytest.mark.parametrize(
    ("text", "at", "message"),
    [
        ("a 'b", 2, "the ' is not closed"),
        ("a `b", 2, "the ` is not closed"),
        ("a /* b", 2, "the comment is not closed"),
        ('a "b"', 2, "double quotes are not allowed"),
        ("a ``", 2, "an identifier must not be empty"),
        ("x'abc'", 0, "an even number of hexadecimal digits"),
        ("a @", 2, "unexpected character '@'"),
    ],
)
def test_a_text_without_tokens_is_an_error_with_its_offset(text: str, at: int, message: str) -> None:
    with pytest.raises(SqlSyntaxError, match=message) as caught:
        tokenize(text)
    assert caught.value.at == at


def test_a_word_is_found_as_a_name_or_as_a_keyword_but_not_in_a_string() -> None:
    assert find_word("Orders", "select 'Orders' from Orders") == 21
    assert find_word("FROM", "select 'FROM' from Orders") == 14
    assert find_word("x", "select 1") is None
