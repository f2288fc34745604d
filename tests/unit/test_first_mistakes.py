"""Errors of typical first mistakes say what to do."""

import importlib
import logging
import sys
import types
from typing import Any

import pandas as pd
import pytest

from millstream.client import unexecuted
from millstream.datastream import MapFunction, StreamExecutionEnvironment
from millstream.engine import announcement
from millstream.errors import MillstreamError, UserError
from millstream.job.job_status import JobStatus
from millstream.runtime.keys import field_getter
from millstream.runtime.rowwise import UserFunctionFailed, flat_map_rows
from millstream.table import DataTypes, EnvironmentSettings, TableEnvironment
from millstream.table.udf import udaf, udf, udtf


def numbers() -> Any:
    return StreamExecutionEnvironment.get_execution_environment().from_collection([(1, 2)])


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: numbers().sum(1), "DataStream has no method 'sum'; call key_by(...) first"),
        (
            lambda: numbers().window(None),
            "DataStream has no method 'window'; call key_by(...) first, "
            "or window_all(...) for windows over the whole stream",
        ),
        (lambda: numbers().flatmap(str), "DataStream has no method 'flatmap'; did you mean 'flat_map'?"),
        (lambda: numbers().key_by(lambda v: v).widow(1), "KeyedStream has no method 'widow'; did you mean 'window'?"),
        (lambda: numbers()._secret, "_secret"),
    ],
)
def test_a_missing_method_says_what_to_call(call: Any, text: str) -> None:
    with pytest.raises(AttributeError) as caught:
        call()
    assert str(caught.value) == text


def test_a_missing_column_is_a_clear_error() -> None:
    table = TableEnvironment.create(EnvironmentSettings.in_streaming_mode()).from_elements([(1,)], ["id"])
    with pytest.raises(AttributeError) as caught:
        _ = table.idd
    assert str(caught.value) == "the table has no column 'idd'; did you mean 'id'?"


def doubled(value: Any) -> Any:
    yield 2 * value


class Doubling(MapFunction):
    def map(self, value: Any) -> Any:
        yield 2 * value


def table() -> Any:
    return TableEnvironment.create(EnvironmentSettings.in_streaming_mode()).from_elements([(1, "a")], ["id", "name"])


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: numbers().map(doubled), "doubled has a yield, so it returns a generator; hint: write return"),
        (lambda: numbers().map(Doubling()), "Doubling.map has a yield, so it returns a generator"),
        (lambda: numbers().filter(doubled), "doubled has a yield"),
        (lambda: numbers().union([1]), "union takes streams, not list; hint: make a stream of the data first"),
        (lambda: list(numbers()), "a stream cannot be iterated over: .*; hint: use execute_and_collect"),
        (
            lambda: StreamExecutionEnvironment.get_execution_environment().enable_checkpointing("10s"),  # type: ignore[arg-type]
            r"the checkpoint interval in ms must be a whole number of at least \d+, not '10s'",
        ),
        (lambda: list(table()), r"the rows of a table exist when it is executed; hint: call execute\(\).collect\(\)"),
        (lambda: table()["id"], r"a table has no columns in brackets; hint: write col\('id'\)"),
        (
            lambda: table().where("id > 1"),
            r"not the text 'id > 1'; hint: write it as in col\('amount'\)",
        ),
        (
            lambda: TableEnvironment.create(EnvironmentSettings.in_streaming_mode()).execute_sql("SELECT 1; SELECT 2"),
            "hint: this takes one statement: run each statement by itself",
        ),
        (
            lambda: TableEnvironment.create(EnvironmentSettings.in_streaming_mode()).from_pandas(
                pd.DataFrame({"n": [1, 2], "a": [1, "x"]})
            ),
            r"the column 'a' has values of several types: .*; hint: convert it",
        ),
        (lambda: field_getter("f0")(("a", 1)), r"\('a', 1\) has no field 'f0'; hint: give the position"),
        (
            lambda: flat_map_rows("Flat Map", lambda value: value, [1]),
            r"the function returned 1, which is not iterable",
        ),
    ],
)
def test_a_mistake_is_answered_with_what_to_write(call: Any, text: str) -> None:
    with pytest.raises(MillstreamError, match=text):
        call()


def test_an_error_of_a_flat_map_is_its_own() -> None:
    def fail(value: Any) -> Any:
        yield value
        message = "int + str"
        raise TypeError(message)

    with pytest.raises(UserFunctionFailed, match=r"TypeError: int \+ str"):
        flat_map_rows("Flat Map", fail, [1])
    assert flat_map_rows("Flat Map", lambda value: None if value else [value], [0, 1])[0] == [0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("collect", "the table has no column 'collect'; call execute().collect()"),
        ("show", "the table has no column 'show'; call execute().print()"),
        ("head", "the table has no column 'head'; call limit(5).execute().print()"),
    ],
)
def test_methods_of_other_libraries_say_what_a_table_has(name: str, text: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(table(), name)
    assert str(caught.value) == text


@pytest.mark.parametrize("module", ["cassandra", "kinesis", "pulsar", "rabbitmq"])
def test_a_missing_connector_says_what_to_use(module: str) -> None:
    name = f"millstream.datastream.connectors.{module}"
    with pytest.raises(ModuleNotFoundError, match=r"there is no connector for \w+, .*; (use|write)") as caught:
        importlib.import_module(name)
    assert caught.value.name == name


def test_names_of_other_modules_can_be_imported_from_the_packages() -> None:
    connectors = importlib.import_module("millstream.datastream.connectors")
    common = importlib.import_module("millstream.common")
    formats = importlib.import_module("millstream.datastream.formats.json")
    assert connectors.KafkaSource.__name__ == "KafkaSource"
    assert connectors.JdbcSink.__name__ == "JdbcSink"
    assert common.JsonRowSerializationSchema is formats.JsonRowSerializationSchema
    for package in (connectors, common):
        assert not hasattr(package, "NoSuchName")


@udf(result_type=DataTypes.BIGINT())
def double(value: int) -> int:
    return 2 * value


@udtf(result_types=[DataTypes.STRING()])
def letters(text: str, limit: int = 3) -> Any:
    yield from text[:limit]


@udaf(result_type=DataTypes.BIGINT(), func_type="pandas")
def highest(values: Any) -> Any:
    return values.max()


def test_the_number_of_arguments_is_checked_when_a_function_is_called() -> None:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    table = env.from_elements([(1, "a")], ["id", "s"])
    with pytest.raises(UserError, match=r"'double' takes 1 argument \(value\), but is called with 2"):
        table.select(double(table.id, table.id))
    with pytest.raises(UserError, match=r"'letters' takes 1 to 2 arguments \(text, limit\), but is called with 3"):
        table.join_lateral(letters(table.s, table.id, table.id).alias("l"))
    with pytest.raises(UserError, match=r"'highest' takes 1 argument \(values\), but is called with 2"):
        table.group_by(table.s).select(highest(table.id, table.id))
    env.create_temporary_function("double", double)
    env.create_temporary_view("t", table)
    with pytest.raises(UserError, match=r"'double' takes 1 argument \(value\), but is called with 0"):
        env.sql_query("SELECT double() FROM t")
    env.sql_query("SELECT double(id) FROM t")


class Terminal:
    def __init__(self, is_terminal: bool) -> None:
        self.text, self._is_terminal = "", is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        pass


def test_a_terminal_shows_that_the_engine_starts(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(announcement, "_is_hidden", False)
    with caplog.at_level(logging.INFO, "millstream.engine"):
        for is_terminal, expected in ((True, "millstream: starting Spark on local[2] ...\n"), (False, "")):
            terminal = Terminal(is_terminal)
            with monkeypatch.context() as patch:
                patch.setattr(sys, "stderr", terminal)
                announcement.announce_start("Spark on local[2]")
            assert terminal.text == expected
    assert caplog.messages == ["starting Spark on local[2]"] * 2
    announcement.hide_announcements()
    terminal = Terminal(is_terminal=True)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal)
        announcement.announce_start("Spark on local[2]")
    assert terminal.text == ""
    assert capsys.readouterr().out == ""


class RunningJob:
    def __init__(self, name: str, status: JobStatus) -> None:
        self.name, self._status = name, status

    def status(self) -> JobStatus:
        return self._status


def test_a_job_that_the_program_does_not_wait_for_is_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(unexecuted, "_jobs", [])
    monkeypatch.setattr(unexecuted, "_unexecuted", {})
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    main = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    for path in ("/usr/bin/millstream", unexecuted.__file__, "/srv/job.py"):
        main.__file__ = path
        for status in (JobStatus.RUNNING, JobStatus.FINISHED, JobStatus.CANCELLING):
            unexecuted.note_job(RunningJob(f"{path} {status.name}", status))
    unexecuted.warn_at_exit()
    assert [record.args for record in caplog.records] == [("/srv/job.py RUNNING",)]
    unexecuted.forget_all()
    unexecuted.warn_at_exit()
    assert len(caplog.records) == 1
