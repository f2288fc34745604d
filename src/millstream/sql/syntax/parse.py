"""Whole texts: one statement, a script, a query, an expression or a type.

Promises: anything that is not of the language raises a SqlError with its place; nothing else is ever raised.
Does not know: what is done with the tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from millstream.sql.errors import SqlError, SqlSyntaxError
from millstream.sql.syntax import tree as s
from millstream.sql.syntax.statements import StatementGrammar
from millstream.sql.types import data_types as t

T = TypeVar("T")


def parse_statements(text: str) -> list[s.Statement]:
    """The statements of a script, with semicolons between."""
    grammar = StatementGrammar(text)
    found: list[s.Statement] = []
    while True:
        while grammar.take_op(";"):
            pass
        if grammar.token.kind == "end":
            return found
        found.append(_placed(text, grammar.statement))
        if not grammar.is_op(";") and grammar.token.kind != "end":
            grammar.fail("';' or the end of the statement")


def parse_statement(text: str) -> s.Statement:
    """The one statement of a text."""
    return _whole(text, lambda grammar: grammar.statement(), semicolon=True)


def parse_query(text: str) -> s.Query:
    """A query."""
    return _whole(text, lambda grammar: grammar.query(), semicolon=True)


def parse_expression(text: str) -> s.Expr:
    """An expression."""
    return _whole(text, lambda grammar: grammar.expression())


def parse_type(text: str) -> t.DataType:
    """A type."""
    return _whole(text, lambda grammar: grammar.data_type())


def _whole(text: str, parse: Callable[[StatementGrammar], T], *, semicolon: bool = False) -> T:
    grammar = StatementGrammar(text)
    found = _placed(text, lambda: parse(grammar))
    while semicolon and grammar.take_op(";"):
        pass
    if grammar.token.kind != "end":
        grammar.fail("the end of the statement")
    return found


def _placed(text: str, parse: Callable[[], T]) -> T:
    try:
        return parse()
    except SqlError as problem:
        raise problem.placed(text) from None
    except RecursionError:
        message = "the statement is nested too deep"
        raise SqlSyntaxError(message, at=0, text=text) from None
