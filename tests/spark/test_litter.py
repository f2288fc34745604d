"""Epochs leave nothing behind in the JVM and in Spark's directories."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from millstream.common import Configuration, Types
from millstream.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from millstream.engine.spark import broadcasts, level_command, stage_builder
from millstream.engine.spark.placement import SlotAnchors
from millstream.engine.spark.stage_builder import StageBuilder

EPOCHS = 12


def run_job(env: StreamExecutionEnvironment) -> int:
    """Run a job of small epochs; returns their number."""
    numbers = env.from_collection(list(range(EPOCHS)), Types.LONG())
    numbers.key_by(lambda n: n % 3, Types.LONG()).map(lambda n: n, Types.LONG()).print()
    return env.execute("litter").get_accumulator_result("millstream.epochs.count")


@pytest.fixture
def env(spark_context):
    configuration = Configuration()
    configuration.set_string("millstream.epoch.max-records", "1")
    configuration.set_string("millstream.engine", "jobs")  # resident slots send no commands
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)


def deleted_on_exit(context) -> int:
    """The number of paths that the JVM will delete when it ends."""
    files = context._jvm.java.lang.Class.forName("java.io.DeleteOnExitHook").getDeclaredField("files")
    files.setAccessible(True)
    return files.get(None).size()


def test_the_jvm_does_not_keep_a_path_for_every_epoch(env, spark_context):
    run_job(env)  # starts workers, which have sockets of their own
    before = deleted_on_exit(spark_context)
    assert run_job(env) >= EPOCHS
    assert deleted_on_exit(spark_context) - before < EPOCHS // 2


def test_large_commands_and_programs_leave_nothing_and_queries_work_afterwards(tmp_path):
    """Every epoch has commands above 1 MiB, and every job is deployed four times; then the JVM is short of memory."""
    program = str(Path(__file__).with_name("littering.py"))
    ran = subprocess.run([sys.executable, program, str(tmp_path)], capture_output=True, text=True, timeout=280)
    assert ran.returncode == 0, ran.stderr[-3000:]
    found = json.loads(ran.stdout.splitlines()[-1])
    assert found["large commands"] >= 4 * found["epochs"], "two stages in two slots"
    count, size = found["later"]
    assert size <= 100_000, found  # the shuffle files of the last epoch
    assert count <= found["first"][0] + broadcasts.KEPT, found
    assert found["live"] == 0, found
    assert found["rows"] == 1000


def new_files(context, before: set[str]) -> list[Path]:
    return [Path(context._temp_dir) / name for name in set(os.listdir(context._temp_dir)) - before]


@pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH])
def test_files_of_programs_and_large_requests_are_emptied_and_deleted(env, spark_context, monkeypatch, capsys, mode):
    monkeypatch.setattr(stage_builder, "LARGE", 1)  # every command and request is a broadcast, which has a file
    monkeypatch.setattr(level_command, "LARGE", 1)
    before = set(os.listdir(spark_context._temp_dir))
    made = []
    broadcast = spark_context.broadcast
    monkeypatch.setattr(spark_context, "broadcast", lambda value: made.append(None) or broadcast(value))
    env.set_runtime_mode(mode)
    jobs = 8 if mode is RuntimeExecutionMode.BATCH else 1
    for _ in range(jobs):
        run_job(env)
    assert len(made) > broadcasts.KEPT
    files = new_files(spark_context, before)
    assert len(files) <= broadcasts.KEPT
    assert sum(file.stat().st_size for file in files) == 0
    assert capsys.readouterr().out.count("\n") == jobs * EPOCHS


@pytest.mark.parametrize("let_go", [broadcasts.release, broadcasts.destroy])
def test_the_jvm_can_move_the_block_of_a_broadcast_that_ended_to_disk(spark_context, let_go):
    ended = [spark_context.broadcast(b"x" * 100) for _ in range(broadcasts.KEPT + 1)]
    for broadcast in ended:
        let_go(broadcast)
    assert not os.path.exists(ended[0]._path)
    io = spark_context._jvm.java.io
    io.ObjectOutputStream(io.ByteArrayOutputStream()).writeObject(ended[0]._python_broadcast)


def test_a_job_of_another_thread_does_not_end_the_commands_of_this_one(spark_context, monkeypatch):
    """Tasks between epochs run while an epoch does, in the same stages."""
    monkeypatch.setattr(stage_builder, "LARGE", 1)
    shared = StageBuilder(spark_context, 2, [])
    placement = SlotAnchors(spark_context, 2).place(shared)

    def answer(index, frames):
        list(frames)
        yield b"done"

    built = shared.add_pinned_stage(placement.seeds, [answer, answer])
    results = []

    def run_other_job() -> None:
        results.append(shared.collect(shared.add_pinned_stage(placement.seeds, [answer, answer])))

    other = threading.Thread(target=run_other_job)
    other.start()
    other.join()
    assert results == [[b"done"] * 2]
    assert shared.collect(built) == [b"done"] * 2
