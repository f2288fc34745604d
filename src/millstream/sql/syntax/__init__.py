"""Lexer, parser and syntax tree of SQL."""

from millstream.sql.syntax.parse import parse_expression, parse_query, parse_statement, parse_statements, parse_type

__all__ = ["parse_expression", "parse_query", "parse_statement", "parse_statements", "parse_type"]
