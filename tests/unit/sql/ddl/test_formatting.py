"""Definitions as text: quotes, types and hidden secrets."""

import pytest

from millstream.sql.catalog.catalog import ColumnDefinition, TableDefinition
from millstream.sql.ddl.formatting import (
    format_create_table,
    format_expression,
    format_options,
    quote_name,
    quote_string,
)
from millstream.sql.syntax import parse_type
from millstream.sql.syntax.parse import parse_expression


def test_names_and_strings_double_their_quotes():
    assert quote_name("a`b") == "`a``b`"
    assert quote_string("it's") == "'it''s'"


@pytest.mark.parametrize(
    ("data_type", "text"),
    [
        ("STRING", "VARCHAR(2147483647)"),
        ("TIMESTAMP_LTZ(3)", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
        ("ROW<`STRING` BYTES>", "ROW<`STRING` VARBINARY(2147483647)>"),
    ],
)
def test_types_are_written_with_flinks_names(data_type, text):
    table = TableDefinition((ColumnDefinition("a", parse_type(data_type)),))
    statement = format_create_table(("c", "d", "t"), table, temporary=True)
    assert statement == f"CREATE TEMPORARY TABLE `c`.`d`.`t` (\n  `a` {text}\n)\n"


def test_secrets_of_options_are_hidden():
    assert "geheim" not in format_options({"password": "geheim", "topic": "x"})


def test_columns_of_an_expression_get_backticks_and_functions_do_not():
    text = "a + upper(upper) + 'a'"
    assert format_expression(parse_expression(text), text, ["a", "upper"]) == "`a` + upper(`upper`) + 'a'"
