"""The magic `%%sql`: its arguments, and the environment that it uses."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from millstream.notebook import NoSuchEnvironment, WrongArguments, run_sql
from millstream.table import EnvironmentSettings, Table, TableEnvironment


@pytest.fixture
def shell():
    """What `run_sql` uses of IPython's shell: the variables of the notebook."""
    return SimpleNamespace(user_ns={"_": 3, "x": 1})


def create():
    return TableEnvironment.create(EnvironmentSettings.in_batch_mode())


def test_a_query_becomes_a_variable_and_an_environment_is_made(shell):
    run_sql(shell, "--into t", "CREATE TEMPORARY VIEW v AS SELECT 1 AS a; SELECT a FROM v;")
    assert isinstance(shell.user_ns["t"], Table)
    assert repr(shell.user_ns["t"]) == "Table(a INT NOT NULL)"
    assert isinstance(shell.user_ns["t_env"], TableEnvironment)


def test_the_only_environment_is_used_under_all_its_names(shell):
    shell.user_ns["mine"] = shell.user_ns["also_mine"] = mine = create()
    run_sql(shell, "--into t", "SELECT 1")
    assert shell.user_ns["t"]._t_env is mine


def test_with_several_environments_one_must_be_named(shell):
    shell.user_ns |= {"one": create(), "two": create()}
    with pytest.raises(NoSuchEnvironment, match="there are several table environments: one, two"):
        run_sql(shell, "", "SELECT 1")
    run_sql(shell, "--env two --into t", "SELECT 1")
    assert shell.user_ns["t"]._t_env is shell.user_ns["two"]


@pytest.mark.parametrize(
    ("line", "cell", "problem"),
    [
        ("--env x", "SELECT 1", "the variable 'x' is not a table environment"),
        ("--env nobody", "SELECT 1", "the variable 'nobody' is not a table environment"),
    ],
)
def test_a_variable_that_is_not_an_environment(shell, line, cell, problem):
    with pytest.raises(NoSuchEnvironment, match=problem):
        run_sql(shell, line, cell)


@pytest.mark.parametrize(
    ("line", "cell", "problem"),
    [
        ("--limit 3", "SELECT 1", "unrecognized arguments: --limit 3"),
        ("--into", "SELECT 1", "expected one argument"),
        ("--into 'a", "SELECT 1", "no closing quotation"),
        ("", " -- nothing\n;", "there is no statement"),
    ],
)
def test_wrong_arguments(shell, line, cell, problem):
    with pytest.raises(WrongArguments, match=problem):
        run_sql(shell, line, cell)
