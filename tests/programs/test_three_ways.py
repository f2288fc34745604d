"""Golden programs on Spark, three ways: to the end at 1; killed after a checkpoint at 2; restored from it at 3."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from millstream.cluster.observations import CheckpointDone
from millstream.common import Configuration
from millstream.connectors.collect import CollectSink, forget, results_of
from millstream.datastream import StreamExecutionEnvironment
from millstream.job.job_status import JobStatus

COMPAT = Path(__file__).parent.parent / "compat"


def _module(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, COMPAT / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


record = _module("record")

PROGRAMS = (
    "broadcast_state",
    "count_window_tumbling",
    "end_of_input",
    "keyed_co_process",
    "list_state",
    "map_state",
    "reducing_aggregating_state",
    "side_outputs",
    "timers_event_time",
    "union",
    "window_aggregate_process",
    "window_session",
    "window_sliding",
    "word_count",
)
"""Programs whose output depends neither on the order in which subtasks meet nor on when watermarks are sent."""


def as_millstream(source: str) -> str:
    return source.replace("from pyflink", "from millstream").replace("import pyflink", "import millstream")


def environment(parallelism: int, directory: Path, **settings: str) -> StreamExecutionEnvironment:
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", str(directory))
    configuration.set_string("execution.checkpointing.interval", "1 ms")
    configuration.set_string("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION")
    for key, value in settings.items():
        configuration.set_string(key.replace("__", ".").replace("_", "-"), value)
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(parallelism)


def committed(
    env: StreamExecutionEnvironment, program: Any, name: str, kill_after: int | None = None
) -> tuple[list[str], str | None]:
    """What the program made visible, and the path of its last checkpoint."""
    paths: list[str] = []
    clients: list[Any] = []

    def listen(observation: Any) -> None:
        if isinstance(observation, CheckpointDone):
            paths.append(observation.path)
            if kill_after is not None and len(paths) == kill_after:
                clients[0].cancel()

    env.register_listener(listen)
    program.define(env).sink_to(CollectSink(name))
    clients.append(env.execute_async(name))
    assert clients[0].wait(120), "the job did not end in time"
    status = clients[0].get_job_status().result()
    if kill_after is None or status is JobStatus.FINISHED:
        clients[0].get_job_execution_result().result()
    queue, found = results_of(name), []
    while not queue.empty():
        found.append(record.text_of(queue.get()))
    forget(name)
    return found, paths[-1] if paths and status is not JobStatus.FINISHED else None


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_three_ways(name: str, tmp_path: Path, spark_context: Any) -> None:
    golden = record.read_golden(name)
    program = record.load(name, as_millstream)
    whole, _ = committed(environment(1, tmp_path), program, f"{name}-1")
    assert record.arranged(golden.order, whole) == tuple(golden.lines)

    small = environment(2, tmp_path, millstream__epoch__max_records="3")
    first, checkpoint = committed(small, program, f"{name}-2", kill_after=2)
    assert checkpoint is not None, "the job finished before it could be killed: its epochs are too large"
    restored = environment(3, tmp_path, execution__state_recovery__path=checkpoint)
    rest, _ = committed(restored, program, f"{name}-3")
    expected = record.arranged("none", golden.lines)
    assert record.arranged("none", first + rest) == expected
