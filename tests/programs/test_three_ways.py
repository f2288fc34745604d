"""Golden programs on Spark in three ways: to the end with parallelism 1, killed after a checkpoint with 2, restored
with 3."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parent))

import three_ways
from three_ways import PROGRAMS, environment, load_program, record

from millstream.connectors.collect import CollectSink, forget, get_results


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a process that was killed while it ran all programs: one process, because each process starts a
    Spark."""
    directory = tmp_path_factory.mktemp("killed")
    process = subprocess.run(
        [sys.executable, three_ways.__file__, str(directory), *PROGRAMS],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert process.returncode == -signal.SIGKILL, process.stderr
    return directory


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_to_the_end(name: str, tmp_path: Path, spark_context: Any) -> None:
    golden = record.read_golden(name)
    env = environment(1, tmp_path)
    load_program(name).define(env).sink_to(CollectSink(name))
    env.execute(name)
    queue, lines = get_results(name), []
    while not queue.empty():
        lines.append(record.text_of(queue.get()))
    forget(name)
    assert record.arranged(golden.order, lines) == tuple(golden.lines)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_killed_after_a_checkpoint_and_restored(name: str, killed: Path, spark_context: Any) -> None:
    golden, directory = record.read_golden(name), killed / name
    before = lines_of(directory / "output")
    checkpoint = (directory / "checkpoint").read_text()
    env = environment(3, directory / "checkpoints", execution__state_recovery__path=checkpoint)
    three_ways.write_to_files(env, load_program(name), directory / "output")
    env.execute(name)
    after = lines_of(directory / "output")
    assert record.arranged("none", after) == record.arranged("none", golden.lines)
    assert len(before) < len(after), "the process was killed when all output was there"


def lines_of(directory: Path) -> list[str]:
    visible = [path for path in directory.rglob("*") if path.is_file() and not path.name.startswith(".")]
    return [line for path in visible for line in path.read_text(encoding="utf-8").splitlines()]
