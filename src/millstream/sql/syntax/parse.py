"""The parser: a whole text becomes a statement, a list of statements, a query, an expression or a type.

Promises: a text that does not follow the grammar raises a SqlError with its offset, and no other exception.
Does not know: what is done with the tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from millstream.sql.errors import SqlError, SqlSyntaxError
from millstream.sql.syntax import tree as s
from millstream.sql.syntax.cursor import Cursor
from millstream.sql.syntax.lexer import Token
from millstream.sql.syntax.queries import QueryParser
from millstream.sql.syntax.statements import StatementParser
from millstream.sql.syntax.type_names import TypeParser
from millstream.sql.types import data_types as t

T = TypeVar("T")


def parse_statements(text: str) -> list[s.Statement]:
    """Parse the statements of a script, which have semicolons between them."""
    cursor = Cursor(text)
    parser = StatementParser(cursor)
    statements: list[s.Statement] = []
    while True:
        while cursor.accept(";"):
            pass
        if cursor.token.type == "end":
            return statements
        statements.append(_run(cursor, parser.parse_statement))
        if not cursor.is_at_end:
            cursor.reject("';' or the end of the statement")


def parse_statement(text: str) -> s.Statement:
    """Parse a text that is one statement."""
    cursor = Cursor(text)
    statement = _run(cursor, StatementParser(cursor).parse_statement)
    _expect_end(cursor, semicolons=True)
    return statement


def parse_query(text: str) -> s.Query:
    """Parse a text that is a query."""
    cursor = Cursor(text)
    query = _run(cursor, _create_query_parser(cursor).parse_query)
    _expect_end(cursor, semicolons=True)
    return query


def parse_expression(text: str) -> s.Expr:
    """Parse a text that is an expression."""
    cursor = Cursor(text)
    expression = _run(cursor, _create_query_parser(cursor).expressions.parse_expression)
    _expect_end(cursor)
    return expression


def parse_type(text: str) -> t.DataType:
    """Parse a text that is a data type."""
    cursor = Cursor(text)
    data_type = _run(cursor, TypeParser(cursor).parse_type)
    _expect_end(cursor)
    return data_type


def list_expression_tokens(text: str, start: int) -> list[Token]:
    """Return the tokens of the expression that begins at an offset of a statement."""
    cursor = Cursor(text)
    while cursor.token.type != "end" and cursor.at < start:
        cursor.advance()
    first = cursor.mark()
    _create_query_parser(cursor).expressions.parse_expression()
    return cursor.tokens_between(first, cursor.mark())


def _create_query_parser(cursor: Cursor) -> QueryParser:
    return QueryParser(cursor, TypeParser(cursor))


def _expect_end(cursor: Cursor, *, semicolons: bool = False) -> None:
    hint = None
    while semicolons and cursor.accept(";"):
        hint = "this takes one statement: run each statement by itself, or all of them with `millstream sql -f FILE`"
    if cursor.token.type != "end":
        cursor.reject("the end of the statement", hint=hint)


def _run(cursor: Cursor, parse: Callable[[], T]) -> T:
    """Call a parser, and turn its errors into errors that show the text."""
    try:
        return parse()
    except SqlError as error:
        raise error.with_text(cursor.text) from None
    except RecursionError:
        message = "the statement is nested too deep"
        raise SqlSyntaxError(message, at=0, text=cursor.text) from None
