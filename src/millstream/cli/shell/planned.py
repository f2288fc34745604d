"""The jobs of a SQL script, planned and not run.

Promises: every statement of the script is executed, except that a job is kept instead of being started; nothing is
printed on standard output.
Does not know: what the plans are wanted for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from millstream.cli.shell import settings
from millstream.cli.shell.failures import Failed, Place
from millstream.cli.shell.screen import Screen
from millstream.cli.shell.script import Piece
from millstream.cli.shell.shell import Leave, Shell, read
from millstream.client import local
from millstream.config.configuration import Configuration
from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment
from millstream.graph.stream_graph import StreamGraph
from millstream.table.environment_settings import EnvironmentSettings
from millstream.table.table_environment import StreamTableEnvironment


class _Planning(Shell):
    """Goes on behind a statement whose job was kept."""

    def _execute(self, piece: Piece, place: Place) -> None:
        with suppress(local.PlanOnly):
            super()._execute(piece, place)


def planned_jobs(
    path: str, init: Sequence[str], configuration: Mapping[str, str]
) -> tuple[int, list[tuple[StreamGraph, str]]]:
    """The jobs of a script, after other scripts; an exit code, and each job with its name."""
    given = Configuration()
    for key, value in configuration.items():
        settings.check(key, value)
        given.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(given)
    tables = StreamTableEnvironment.create(env, EnvironmentSettings.new_instance().with_configuration(given).build())
    screen = Screen(interactive=False)
    shell = _Planning(env, tables, screen)
    found: list[tuple[StreamGraph, str]] = []
    local._intercept.append(lambda graph, _configuration, name: found.append((graph, name)))
    try:
        for each in (*init, path):
            with suppress(Leave):
                shell.run(read(each), each)
    except Failed as failed:
        screen.problem(failed.error, verbose=False, about=failed.where)
        return 1, found
    finally:
        local._intercept.pop()
    return 0, found
