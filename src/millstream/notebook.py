"""The extension of IPython: `%load_ext millstream.notebook` adds `%sql` and `%%sql`.

    %%sql [--env NAME] [--into NAME]
    SELECT ...

Promises: statements run one after another in a table environment of the notebook, and each result is shown when it is
there. The environment is the variable of `--env`, else the only table environment among the variables, else a new one
in streaming mode, which becomes the variable `t_env`. With `--into`, the last statement is a query that is not
executed: its table becomes a variable.
Does not know: how results are shown."""

from __future__ import annotations

import argparse
import shlex
from typing import Any, NoReturn

from millstream.cli.shell.statements import split_statements
from millstream.errors import UserError
from millstream.table.environment_settings import EnvironmentSettings
from millstream.table.notebook_display import show_result
from millstream.table.table_environment import TableEnvironment

_NEW_NAME = "t_env"


class WrongArguments(UserError):
    """The arguments of the magic are wrong."""

    hint = "%%sql [--env NAME] [--into NAME], and statements below"


class NoSuchEnvironment(UserError):
    """The table environment for the statements is not known."""

    def __init__(self, message: str) -> None:
        super().__init__(message, hint="name its variable: %%sql --env NAME")


def load_ipython_extension(shell: Any) -> None:
    """Register the magics; IPython calls this."""
    shell.register_magic_function(lambda line, cell=None: run_sql(shell, line, cell), "line_cell", "sql")


def run_sql(shell: Any, line: str, cell: str | None) -> None:
    """Run the statements of a cell, or of a line.

    Args:
        shell: The shell of IPython, which has the variables.
        line: The text behind `%%sql`; for `%sql` the statement.
        cell: The lines below `%%sql`; None for `%sql`.

    """
    arguments, text = (_parse_arguments(line), cell) if cell is not None else (_parse_arguments(""), line)
    t_env = _find_environment(shell.user_ns, arguments.env)
    statements = [statement.text for statement in split_statements(text)]
    if not statements:
        message = "there is no statement"
        raise WrongArguments(message)
    table = statements.pop() if arguments.into is not None else None
    for statement in statements:
        result = t_env.execute_sql(statement)
        client = result.get_job_client()
        if client is not None and result._results is None:
            client._ipython_display_()
        else:
            show_result(result)
    if table is not None:
        shell.user_ns[arguments.into] = t_env.sql_query(table)


class _ArgumentParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise WrongArguments(message)


def _parse_arguments(line: str) -> argparse.Namespace:
    parser = _ArgumentParser(prog="%%sql", add_help=False, allow_abbrev=False)
    parser.add_argument("--env")
    parser.add_argument("--into")
    try:
        return parser.parse_args(shlex.split(line))
    except ValueError as problem:  # an unclosed quote
        raise WrongArguments(str(problem).lower()) from None


def _find_environment(variables: dict[str, Any], name: str | None) -> TableEnvironment:
    if name is not None:
        t_env = variables.get(name)
        if not isinstance(t_env, TableEnvironment):
            message = f"the variable '{name}' is not a table environment"
            raise NoSuchEnvironment(message)
        return t_env
    environments = {
        id(value): (variable, value)
        for variable, value in variables.items()
        if isinstance(value, TableEnvironment) and not variable.startswith("_")
    }
    if len(environments) > 1:
        names = ", ".join(variable for variable, _ in environments.values())
        message = f"there are several table environments: {names}"
        raise NoSuchEnvironment(message)
    if environments:
        ((_, t_env),) = environments.values()
        return t_env
    variables[_NEW_NAME] = new = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    return new
