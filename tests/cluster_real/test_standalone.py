"""A standalone cluster of two machines: programs and their files get there, and slots stay where their state is. That
its machines die is a case of chaos, `executors`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from millstream.testing.spark_cluster import SparkCluster, kill, spark_home

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]

SOURCE = Path(__file__).parent.parent.parent / "src"

PROGRAM = """
import glob, json, os, sys, types
import helper
from millstream.cluster import entrypoint
from millstream.common import Configuration, Encoder, Types, WatermarkStrategy
from millstream.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from millstream.datastream.connectors.file_system import FileSink
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.datastream.state import ValueStateDescriptor

directory = sys.argv[1]
settings = json.loads(sys.argv[2])


class Place(KeyedProcessFunction):
    def open(self, runtime_context):
        self.word = open(runtime_context.get_distributed_cache().get_file("word")).read()
        self.subtask = runtime_context.get_index_of_this_subtask()
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        stores = glob.glob(settings["io.tmp.dirs"] + "/*/stores/*/*/data.mdb")
        yield f"{helper.twice(value)} {count} {self.word} {self.subtask} {os.getcwd()} {len(stores)}"


def main():
    configuration = Configuration()
    for key, value in settings.items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(2)
    env.add_python_file(directory + "/helper.py")
    env.register_cached_file(directory + "/word.txt", "word")
    numbers = env.from_source(NumberSequenceSource(0, 399), WatermarkStrategy.no_watermarks(), "numbers")
    placed = numbers.key_by(lambda value: value % 10, Types.LONG()).process(Place(), Types.STRING())
    placed.sink_to(FileSink.for_row_format(directory + "/out", Encoder.simple_string_encoder()).build())
    # the driver is on the same machine: it leaves to the executors what they have to delete
    entrypoint.shutil = types.SimpleNamespace(rmtree=lambda *_, **__: None)
    env.execute("placed")


if __name__ == "__main__":
    main()
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkCluster]:
    with SparkCluster(workers=2) as made:
        yield made


@pytest.fixture
def program(tmp_path: Path, cluster: SparkCluster) -> tuple[Path, dict[str, str]]:
    """The program, with a module and a file of its own, and its settings but for the master."""
    (tmp_path / "job.py").write_text(PROGRAM)
    (tmp_path / "helper.py").write_text("def twice(value):\n    return 2 * value\n")
    (tmp_path / "word.txt").write_text("here")
    (tmp_path / "checkpoints").mkdir()
    settings = {
        "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
        "execution.checkpointing.interval": "1 s",
        "millstream.epoch.max-records": "40",
        "state.backend.type": "lmdb",
        "io.tmp.dirs": str(tmp_path / "local"),
    }
    return tmp_path, settings


def run(command: list[str], directory: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": f"{SOURCE}{os.pathsep}{directory}", "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, env=environment, cwd=directory)
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    return done.stdout


def rows(directory: Path) -> list[list[str]]:
    files = [file for file in (directory / "out").rglob("part*") if file.is_file() and ".staging" not in file.parts]
    return [line.split() for file in files for line in file.read_text().splitlines()]


def check(found: list[list[str]]) -> None:
    assert sorted(int(row[0]) for row in found) == [2 * value for value in range(400)]
    assert sorted(int(row[1]) for row in found) == sorted(count for count in range(1, 41) for _ in range(10))
    assert {row[2] for row in found} == {"here"}
    executors: dict[str, set[str]] = {}
    for row in found:
        executors.setdefault(row[3], set()).add(row[4])
    assert len(executors) == 2, "both subtasks had keys"
    # the first epoch may run before the second machine has come: after that a slot stays
    assert sum(map(len, executors.values())) <= 3, f"slots wandered: {executors}"
    assert len(set().union(*executors.values())) == 2, "one machine did everything"


def check_clean(directory: Path, found: list[list[str]]) -> None:
    """While the job ran there were stores on the hosts; now there is only what the driver itself would delete."""
    assert {row[5] for row in found} <= {str(count) for count in range(1, 9)}
    assert sorted(path.name for path in (directory / "local").glob("*/*")) == ["bundle.tar", "in-use"]


def test_a_program_and_its_files_reach_the_executors_and_slots_stay(program, cluster) -> None:
    directory, settings = program
    millstream = "from millstream.cli import main; raise SystemExit(main())"
    command = [sys.executable, "-c", millstream, "run", "--master", cluster.url]
    given = {key: value for key, value in cluster.settings().items() if key.startswith("spark.")}
    defined = [word for key, value in given.items() for word in ("-D", f"{key}={value}")]
    run([*command, *defined, str(directory / "job.py"), str(directory), json.dumps(settings)], directory)
    check(rows(directory))
    check_clean(directory, rows(directory))


def test_spark_submit_runs_the_same_program(program, cluster) -> None:
    """The line of docs/howto/cluster.md."""
    directory, settings = program
    command = [str(spark_home() / "bin" / "spark-submit"), "--master", cluster.url, "--executor-memory", "512m"]
    own = ["--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.driver.bindAddress=127.0.0.1"]
    own += ["--conf", "spark.executor.cores=1", "--driver-memory", "512m"]
    run([*command, *own, str(directory / "job.py"), str(directory), json.dumps(settings)], directory)
    check(rows(directory))


CORES = """
import json, sys
from pyspark import TaskContext
from millstream.common import Configuration, Types
from millstream.datastream import SlotSharingGroup, StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(json.loads(sys.argv[1])))
group = SlotSharingGroup.builder("heavy").set_cpu_cores(1.5).set_task_heap_memory_mb(64).build()
numbers = env.set_parallelism(1).from_collection(list(range(3)), type_info=Types.LONG())
cores = numbers.map(lambda n: TaskContext.get().cpus(), Types.INT()).slot_sharing_group(group)
with cores.execute_and_collect() as rows:
    print("cores of tasks:", set(rows), flush=True)
"""


def test_slots_have_the_cores_of_their_group_and_nothing_is_left_running(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(CORES)
    with SparkCluster(workers=1, cores=2) as made:
        settings = json.dumps({**made.settings(), "spark.executor.cores": "2"})
        assert "cores of tasks: {2}" in run([sys.executable, str(tmp_path / "job.py"), settings], tmp_path)
        pids = [process.pid for process in (made._master, *made._workers.values())]
        kill(pids[1])
        time.sleep(0.1)
    for pid in pids:
        assert not kill(pid, 0), pid
