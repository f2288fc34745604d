"""PyFlink's programs give PyFlink's output: each golden program, run without Spark after its imports are changed."""

from __future__ import annotations

import re

import pytest

import record
from millstream.client import local
from millstream.client.job_client import JobClient
from millstream.cluster import entrypoint
from millstream.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from millstream.testing.inline_engine import InlineEngine

NOT_RUN = {
    "state_ttl_expires": "it sleeps inside its function; processing time stands still within an epoch (law 2)",
}
"""Programs that are not run yet, or that cannot agree, with the reason."""


ORDER_SHOWS = {
    "emitted_objects_change_later",
    "functions_with_open",
    "key_types",
    "partitioners",
    "table_streams",
    "timers_each_watermark",
    "trigger_continuous",
    "trigger_custom",
    "window_late_dropped",
    "window_lateness",
    "window_session_lateness",
    "window_tumbling_process",
}
"""from_collection deals elements out over the subtasks, so the order in which a key's elements meet again is open, in
Flink too; these programs show it, or the subtask, in their output."""


def as_millstream(source: str) -> str:
    """A PyFlink program as its user would move it."""
    return re.sub(r"^(\s*(?:from|import) )pyflink", r"\1millstream", source, flags=re.MULTILINE)


@pytest.fixture(autouse=True)
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run jobs in this process, without Spark."""

    def submit(graph, configuration, name, listeners=()):
        running = entrypoint.submit(graph, configuration, name, engine=InlineEngine(), listeners=listeners)
        return JobClient(local.LocalHandle(running))

    monkeypatch.setattr(local, "submit", submit)
    monkeypatch.setitem(local._defaults, "millstream.sql.batch-engine", "operators")


CASES = [name for name in record.program_names() if name.startswith("cases_")]
"""Tables of cases, which test_cases.py runs."""

NAMES = [name for name in record.program_names() if name not in NOT_RUN and name not in CASES]


def run(name: str, parallelism: int, mode: RuntimeExecutionMode | None = None) -> list[str]:
    """The output of a program as text; `mode` replaces the mode that the program sets."""
    golden = record.read_golden(name)
    program = record.load(name, as_millstream)
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    env._configuration.set_string("millstream.sql.batch-engine", "operators")  # the inline engine has no Spark SQL
    if golden.watermarks == "each" and mode is not RuntimeExecutionMode.BATCH:
        env._configuration.set_string("millstream.epoch.max-records", "1")
    output = program.define(env)
    if mode is not None:
        env.set_runtime_mode(mode)
    elements = output if isinstance(output, list) else output.execute_and_collect()
    return [record.text_of(element) for element in elements]


@pytest.mark.parametrize("name", NAMES)
def test_program_gives_pyflinks_output(name: str) -> None:
    """Element by element, in PyFlink's order as far as the program fixes it."""
    golden = record.read_golden(name)
    assert record.arranged(golden.order, run(name, 1)) == tuple(golden.lines)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ORDER_SHOWS])
def test_output_does_not_depend_on_parallelism(name: str) -> None:
    """Dealt out over three subtasks, the same elements come out."""
    assert record.arranged("none", run(name, 3)) == record.arranged("none", record.read_golden(name).lines)
