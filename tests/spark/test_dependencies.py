"""Files, packages and archives of a program reach Spark's workers, which are separate processes."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from millstream.common import Types
from millstream.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment

pytestmark = pytest.mark.usefixtures("spark_context")


class Brought(MapFunction):
    """Uses all types of dependencies."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.cached = runtime_context.get_distributed_cache().get_file("greeting").read_text()

    def map(self, value: int) -> str:
        import brought_to_spark  # type: ignore[import-not-found]

        return f"{self.cached} {brought_to_spark.NAME} {Path('data/inner.txt').read_text()} {value}"


@pytest.mark.parametrize("name", ["one", "two"])
def test_workers_have_the_files_of_the_job_and_not_of_the_last_one(tmp_path: Path, name: str) -> None:
    (tmp_path / "brought_to_spark.py").write_text(f"NAME = '{name}'\n")
    (tmp_path / "greeting.txt").write_text("hello")
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as zipped:
        zipped.writestr("inner.txt", "inside")
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    env.add_python_file(str(tmp_path / "brought_to_spark.py"))
    env.add_python_archive(str(tmp_path / "archive.zip"), "data")
    env.register_cached_file(str(tmp_path / "greeting.txt"), "greeting")
    stream = env.from_collection([1, 2, 3], Types.INT()).rebalance().map(Brought(), Types.STRING())
    assert sorted(stream.execute_and_collect()) == [f"hello {name} inside {n}" for n in (1, 2, 3)]
