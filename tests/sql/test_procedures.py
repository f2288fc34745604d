"""CALL executes procedures of a catalog, and SHOW PROCEDURES lists them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from millstream.errors import InvalidArgument, UserError
from millstream.sql.errors import CatalogError, SqlError
from millstream.table import DataTypes, TableEnvironment
from millstream.table.catalog import Catalog, ObjectPath, Procedure, ProcedureContext


def repeat(context: ProcedureContext, word: str, times: int = 2) -> Iterator[tuple[str, int]]:
    assert context.get_table_environment().get_current_catalog() == "default_catalog"
    assert context.get_execution_environment() is not None
    yield from ((word, i) for i in range(times))


def fail(context: ProcedureContext) -> Iterator[str]:
    yield "a row"
    message = "the disk is full"
    raise OSError(message)


ROW = DataTypes.ROW([DataTypes.FIELD("word", DataTypes.STRING()), DataTypes.FIELD("i", DataTypes.BIGINT())])


@pytest.fixture
def catalog(t_env: TableEnvironment) -> Catalog:
    catalog = t_env.get_catalog("default_catalog")
    assert catalog is not None
    t_env.execute_sql("CREATE DATABASE system_db")
    for name, procedure in {
        "repeat_word": Procedure(repeat, ["STRING", DataTypes.BIGINT()], ROW),
        "fail": Procedure(fail),
        "wrong": Procedure(lambda context: ["a"], (), "INT"),
    }.items():
        catalog.create_procedure(ObjectPath("system_db", name), procedure, False)
    return catalog


def run(t_env: TableEnvironment, statement: str) -> list[tuple[Any, ...]]:
    with t_env.execute_sql(statement).collect() as rows:
        return [tuple(row) for row in rows]


@pytest.mark.parametrize(
    "arguments",
    ["'a'", "'a', 2", "LOWER('A'), 1 + 1", "word => 'a'", "times => 2, word => 'a'", "CAST('a' AS STRING)"],
)
@pytest.mark.usefixtures("catalog")
def test_arguments_are_given_by_position_and_by_name(t_env: TableEnvironment, arguments: str) -> None:
    result = t_env.execute_sql(f"CALL system_db.repeat_word({arguments})")
    assert result.get_table_schema().get_field_names() == ["word", "i"]
    with result.collect() as rows:
        assert [tuple(row) for row in rows] == [("a", 0), ("a", 1)]


@pytest.mark.usefixtures("catalog")
def test_procedures_are_listed(t_env: TableEnvironment) -> None:
    assert run(t_env, "SHOW PROCEDURES") == []
    assert run(t_env, "SHOW PROCEDURES IN default_catalog.system_db LIKE '%at%'") == [("repeat_word",)]
    t_env.execute_sql("USE system_db")
    assert run(t_env, "SHOW PROCEDURES NOT ILIKE 'REPEAT%'") == [("fail",), ("wrong",)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("repeat_wrd('a')", "there is no procedure"),
        ("repeat_word()", "needs the argument 'word' of type STRING"),
        ("repeat_word(1)", "the argument 'word' must be STRING, not INT"),
        ("repeat_word('a', 1, 2)", "takes 2 arguments at most"),
        ("repeat_word('a', word => 'b')", "'word' occurs twice"),
        ("repeat_word(words => 'b')", "has no parameter 'words'"),
        ("repeat_word('a', UNIX_TIMESTAMP())", "'times' must be a constant"),
        ("repeat_word(id)", "id"),
    ],
)
@pytest.mark.usefixtures("catalog")
def test_a_wrong_call_is_refused(t_env: TableEnvironment, call: str, message: str) -> None:
    with pytest.raises(SqlError, match=message):
        t_env.execute_sql(f"CALL default_catalog.system_db.{call}")


@pytest.mark.usefixtures("catalog")
def test_errors_name_the_procedure(t_env: TableEnvironment) -> None:
    with pytest.raises(UserError, match=r"the disk is full(.|\n)*system_db.fail"):
        t_env.execute_sql("CALL system_db.fail()")
    with pytest.raises(UserError, match=r"'system_db\.wrong': it returned 'a'"):
        t_env.execute_sql("CALL system_db.wrong()")


def test_a_catalog_holds_procedures(catalog: Catalog) -> None:
    path = ObjectPath("system_db", "fail")
    assert catalog.list_procedures("system_db") == ["fail", "repeat_word", "wrong"]
    catalog.create_procedure(path, Procedure(fail), True)
    with pytest.raises(CatalogError, match="already exists"):
        catalog.create_procedure(path, catalog.get_procedure(path), False)
    catalog.drop_procedure(path, False)
    catalog.drop_procedure(path, True)
    with pytest.raises(CatalogError, match="there is no procedure"):
        catalog.get_procedure(path)


def test_the_parameters_of_a_procedure_have_types() -> None:
    with pytest.raises(InvalidArgument, match="needs a context and 1 named parameters"):
        Procedure(repeat, ["STRING"])
