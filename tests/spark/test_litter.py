"""What an epoch leaves in the JVM and in Spark's directories: nothing that stays."""

from __future__ import annotations

import os

import pytest

from millstream.common import Configuration, Types
from millstream.datastream import StreamExecutionEnvironment
from millstream.engine.spark import broadcasts, stages

EPOCHS = 12


def run_job(env: StreamExecutionEnvironment) -> int:
    """Run a job of small epochs; how many there were."""
    numbers = env.from_collection(list(range(EPOCHS)), Types.LONG())
    numbers.key_by(lambda n: n % 3, Types.LONG()).map(lambda n: n, Types.LONG()).print()
    return env.execute("litter").get_accumulator_result("millstream.epochs.count")


@pytest.fixture
def env(spark_context):
    configuration = Configuration()
    configuration.set_string("millstream.epoch.max-records", "1")
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)


def deleted_on_exit(context) -> int:
    """How many paths the JVM remembers to delete them when it ends."""
    files = context._jvm.java.lang.Class.forName("java.io.DeleteOnExitHook").getDeclaredField("files")
    files.setAccessible(True)
    return files.get(None).size()


def test_the_jvm_does_not_remember_a_path_for_every_epoch(env, spark_context):
    run_job(env)  # starts workers, which have sockets of their own
    before = deleted_on_exit(spark_context)
    assert run_job(env) >= EPOCHS
    assert deleted_on_exit(spark_context) - before < EPOCHS // 2


def test_files_of_programs_and_large_commands_do_not_add_up(env, spark_context, monkeypatch, capsys):
    monkeypatch.setattr(stages, "_LARGEST_COMMAND", 1)  # every command is a broadcast, which has a file
    before = sorted(os.listdir(spark_context._temp_dir))
    made = []
    broadcast = spark_context.broadcast
    monkeypatch.setattr(spark_context, "broadcast", lambda value: made.append(None) or broadcast(value))
    epochs = run_job(env)
    assert len(made) >= 4 * epochs, "two stages in two slots"
    assert len(set(os.listdir(spark_context._temp_dir)) - set(before)) <= broadcasts.KEPT
    assert capsys.readouterr().out.count("\n") == EPOCHS


def test_a_broadcast_is_destroyed_after_others_have_ended(spark_context):
    """A task of a failed job may still read it: see `broadcasts`."""
    late = spark_context.broadcast(b"x" * 100)
    broadcasts.end(late)
    assert os.path.exists(late._path)
    for _ in range(broadcasts.KEPT):
        broadcasts.end(spark_context.broadcast(b"y"))
    assert not os.path.exists(late._path)
