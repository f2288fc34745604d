"""What an epoch leaves in the JVM and in Spark's directories: nothing that stays."""

from __future__ import annotations

import pytest

from millstream.common import Configuration, Types
from millstream.datastream import StreamExecutionEnvironment

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
