"""`millstream dev`: a program that is restarted when its file is saved, with an engine in its process instead of
Spark."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from session_cluster import SessionCluster, start, wait_for

from millstream.cli.reloading import Reloader, list_files
from millstream.cli.sample_input import read_rounds

PROGRAM = """
from millstream.cluster import entrypoint
from millstream.testing.inline_engine import InlineEngine
entrypoint.SparkEngine = lambda settings: InlineEngine()
from millstream.common import Types, WatermarkStrategy
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from names import NAME

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
numbers = env.from_source(NumberSequenceSource(0, 10**12), WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")
sums = numbers.key_by(lambda n: n % 5, Types.LONG()).reduce(lambda a, b: a + b).uid("sums")
sums.filter(lambda n: n < 0).print()
print("this is", NAME)
env.execute(NAME)
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SessionCluster]:
    cluster = start(tmp_path / "local", tmp_path / "shared")
    yield cluster
    cluster.driver.shut_down()
    cluster.close()


def test_a_program_is_replaced_when_a_file_is_saved_and_keeps_its_state(
    cluster: SessionCluster, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "job.py").write_text(PROGRAM)
    (folder / "names.py").write_text("NAME = 'the first'")
    shown: list[str] = []
    reloader = Reloader(cluster.driver, folder / "job.py", [], str(tmp_path / "kept"), shown.append)
    threading.Thread(target=reloader.run, daemon=True).start()
    wait_for(lambda: "this is the first\n" in "".join(shown))
    first = wait_for(lambda: cluster.jobs().get("the first")).id
    wait_for(lambda: cluster.client.get(f"/jobs/{first}/checkpoints")["counts"]["completed"])

    (folder / "names.py").write_text("NAME = 'the second'")
    second = wait_for(lambda: cluster.jobs().get("the second")).id
    assert "--- names.py was saved: job.py starts again" in shown
    assert cluster.jobs()["the first"].state == "FINISHED"
    (savepoint,) = (tmp_path / "kept").iterdir()
    options = {entry["key"]: entry["value"] for entry in cluster.client.get(f"/jobs/{second}/jobmanager/config")}
    assert options["execution.state-recovery.path"] == str(savepoint)

    (folder / "names.py").write_text("NAME = ")
    wait_for(lambda: "--- job.py failed: SyntaxError: invalid syntax" in shown)
    (folder / "names.py").write_text("NAME = 'the third'")
    wait_for(lambda: cluster.jobs().get("the third"))


def test_files_of_environments_and_hidden_ones_are_not_watched(tmp_path: Path) -> None:
    for name in ("job.py", "lib/a.py", "conf/config.yaml", "data.csv", ".git/b.py", "venv/pyvenv.cfg", "venv/c.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    watched = [path.relative_to(tmp_path).as_posix() for path in list_files(tmp_path)]
    assert sorted(watched) == ["conf/config.yaml", "job.py", "lib/a.py"]


def test_a_sample_is_read_again_after_its_end(tmp_path: Path) -> None:
    (tmp_path / "sample").write_text("a\n\nb\n")
    lines = read_rounds(tmp_path / "sample")
    assert [next(lines) for _ in range(3)] == ["a", "b", "a"]
    (tmp_path / "sample").write_text("")
    assert list(lines) == ["b"]
