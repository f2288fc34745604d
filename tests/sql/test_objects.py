"""Objects of structured types in programs: Python classes, user-defined functions, declared columns, stored plans."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from remaining_rows import rows

from millstream.errors import UserError
from millstream.sql.compiled.codec import Reader, Writer
from millstream.sql.errors import SqlError
from millstream.sql.syntax import parse_type
from millstream.sql.types import data_types as t
from millstream.table import TableEnvironment
from millstream.table.udf import udf
from millstream.types.row import Row


@dataclass(frozen=True)
class Person:
    """A class that structured types name."""

    name: str
    age: int | None
    tags: list[str] = field(default_factory=list, compare=False)


CLASS = f"{Person.__module__}.{Person.__qualname__}"
TYPE = f"STRUCTURED<'{CLASS}', name STRING, age INT>"
BOB = f"OBJECT_OF('{CLASS}', 'name', 'Bob', 'age', 42)"


def only(env: TableEnvironment, sql: str) -> Any:
    ((rows_of_statement,),) = rows(env.sql_query(sql))
    return rows_of_statement


def test_a_structured_value_is_an_object_of_its_class_or_a_row(t_env: TableEnvironment) -> None:
    assert only(t_env, f"SELECT {BOB}") == Person("Bob", 42)
    assert only(t_env, f"SELECT ARRAY[OBJECT_UPDATE({BOB}, 'age', CAST(NULL AS INT))]") == [Person("Bob", None)]
    assert only(t_env, f"SELECT CAST(NULL AS {TYPE})") is None
    strange = only(t_env, f"SELECT {BOB.replace(CLASS, 'com.example.User')}")
    assert strange == Row("Bob", 42)


def test_the_name_of_a_class_imports_nothing(t_env: TableEnvironment, tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "not_yet_imported.py").write_text("raise SystemExit('imported by a text')")
    monkeypatch.syspath_prepend(tmp_path)
    assert only(t_env, "SELECT OBJECT_OF('not_yet_imported.User', 'age', 1)") == Row(1)


def test_a_class_that_cannot_hold_the_fields_is_refused(t_env: TableEnvironment) -> None:
    with pytest.raises(UserError, match="has no field 'size'"):
        rows(t_env.sql_query(f"SELECT OBJECT_OF('{CLASS}', 'name', 'Bob', 'size', 1)"))
    with pytest.raises(UserError, match="needs a field 'age'"):
        rows(t_env.sql_query(f"SELECT OBJECT_OF('{CLASS}', 'name', 'Bob')"))


def test_objects_are_arguments_and_results_of_user_defined_functions(t_env: TableEnvironment) -> None:
    @udf(result_type=parse_type(TYPE))
    def older(person: Person) -> Person:
        return Person(person.name, None if person.age is None else person.age + 1)

    t_env.create_temporary_function("older", older)
    assert only(t_env, f"SELECT older({BOB})") == Person("Bob", 43)
    assert only(t_env, f"SELECT older({BOB}).age") == 43


def test_a_plan_keeps_the_class_of_a_type() -> None:
    data_type = parse_type(f"ARRAY<{TYPE} NOT NULL>")
    row = t.row_of(["a", "b"], [data_type, parse_type(TYPE)])
    read = Reader(lambda _name: pytest.fail("no function")).value(Writer(lambda _f: ()).plain(row))
    assert read == row
    assert read.types[1] != t.row_of(["name", "age"], [t.STRING, t.INT])


def test_a_column_of_a_structured_type_is_described_as_in_flink(t_env: TableEnvironment) -> None:
    t_env.execute_sql(
        "CREATE TABLE t (id INT, o STRUCTURED<'com.example.User', name STRING NOT NULL 'the name', "
        "x STRUCTURED<'x.STRING', a ARRAY<INT NOT NULL>> NOT NULL> NOT NULL COMMENT 'an object') "
        "WITH ('connector' = 'blackhole')"
    )
    with t_env.execute_sql("DESCRIBE t").collect() as rows_of_statement:
        described = [row[1] for row in rows_of_statement]
    inner = "`x` STRUCTURED<'x.STRING', `a` ARRAY<INT NOT NULL>> NOT NULL"
    assert described == ["INT", f"STRUCTURED<'com.example.User', `name` STRING NOT NULL, {inner}>"]
    with t_env.execute_sql("SHOW CREATE TABLE t").collect() as rows_of_statement:
        ((statement,),) = rows_of_statement
    column = f"  `o` STRUCTURED<'com.example.User', `name` VARCHAR(2147483647) NOT NULL, {inner}> NOT NULL"
    assert f"{column} COMMENT 'an object'" in statement.split("\n")


@pytest.mark.parametrize(
    "value",
    [
        "OBJECT_OF('com.example.User', 'name', 'Bob', 'age', 42)",
        "OBJECT_OF('com.example.Other', 'n', 'Bob', 'a', 42)",
        "ROW('Bob', 42)",
    ],
)
def test_objects_and_rows_are_written_by_field_position(t_env: TableEnvironment, tmp_path: Path, value: str) -> None:
    t_env.execute_sql(
        f"CREATE TABLE t (id INT, o {TYPE}) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'json')"
    )
    t_env.execute_sql(f"INSERT INTO t SELECT 1, {value}").wait()
    assert rows(t_env.sql_query("SELECT id, o, o.age, t.o.* FROM t")) == [(1, Person("Bob", 42), 42, "Bob", 42)]


def test_values_of_other_classes_are_refused(t_env: TableEnvironment) -> None:
    t_env.execute_sql(f"CREATE TABLE t (o {TYPE}) WITH ('connector' = 'blackhole')")
    with pytest.raises(SqlError, match="is STRUCTURED"):
        t_env.execute_sql("INSERT INTO t SELECT 'Bob'")
    with pytest.raises(SqlError, match="have the same name"):
        parse_type("STRUCTURED<'c', a INT, a INT>")
