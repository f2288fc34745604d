"""Helpers of the three runs of each program: the programs, their environment, and the process that is killed.

    python three_ways.py DIRECTORY NAME ...

runs each program at parallelism 2 until its second checkpoint is complete, holds it there, writes the path of the
checkpoint to DIRECTORY/NAME/checkpoint, and kills itself when all of them have come that far."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from millstream.cluster.job_events import CheckpointDone
from millstream.common import Configuration, Encoder, Types
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.file_system import FileSink

COMPAT = Path(__file__).parent.parent / "compat"
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


def _load_module(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, COMPAT / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


record = _load_module("record")


def load_program(name: str) -> Any:
    """A recorded program with millstream in place of PyFlink."""
    return record.load(
        name,
        lambda source: source.replace("from pyflink", "from millstream").replace("import pyflink", "import millstream"),
    )


def environment(parallelism: int, directory: Path, **settings: str) -> StreamExecutionEnvironment:
    """An environment whose checkpoints are in a directory, one after each epoch."""
    directory.mkdir(parents=True, exist_ok=True)
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", str(directory))
    configuration.set_string("execution.checkpointing.interval", "1 ms")
    configuration.set_string("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION")
    for key, value in settings.items():
        configuration.set_string(key.replace("__", ".").replace("_", "-"), value)
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(parallelism)


def write_to_files(env: StreamExecutionEnvironment, program: Any, directory: Path) -> None:
    """The program with its output in files, as the lines that were recorded of it."""
    sink = FileSink.for_row_format(str(directory), Encoder.simple_string_encoder()).build()
    # As record.text_of, which workers cannot import.
    lines = program.define(env).map(
        lambda element: str(element).replace("\\", "\\\\").replace("\n", "\\n"), Types.STRING()
    )
    lines.sink_to(sink)


def _hold_at_second_checkpoint(name: str, directory: Path) -> None:
    env = environment(2, directory / "checkpoints", millstream__epoch__max_records="3", restart_strategy__type="none")
    reached, checkpoints = threading.Event(), []

    def listen(observation: Any) -> None:
        if isinstance(observation, CheckpointDone):
            checkpoints.append(observation.path)
            if len(checkpoints) == 2:
                reached.set()
                threading.Event().wait()  # the job waits for its listeners, and so goes no further

    env.register_listener(listen)
    write_to_files(env, load_program(name), directory / "output")
    client = env.execute_async(name)
    while not reached.wait(0.05):
        status = client.get_job_status().result()
        assert not status.is_terminal_state(), f"{name} is {status.name} before it could be killed"
    (directory / "checkpoint").write_text(checkpoints[1])


def main() -> None:
    """Bring each program to its second checkpoint, then die."""
    directory = Path(sys.argv[1])
    for name in sys.argv[2:]:
        _hold_at_second_checkpoint(name, directory / name)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
