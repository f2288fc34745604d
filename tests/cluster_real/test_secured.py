"""A cluster with Spark's authentication and encryption on: the settings of docs/howto/secure.md."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from millstream.testing.spark_cluster import SparkCluster, processes

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]

SOURCE = Path(__file__).parent.parent.parent / "src"
SECRET = "a-secret-of-the-cluster"
SECURED = {
    "spark.authenticate": "true",
    "spark.authenticate.secret": SECRET,
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.cipher": "AES/GCM/NoPadding",
    "spark.io.encryption.enabled": "true",
}
PROGRAM = """
import json, sys
from millstream.common import Configuration, Types
from millstream.datastream import StreamExecutionEnvironment

configuration = Configuration()
for key, value in json.load(open("settings.json")).items():
    configuration.set_string(key, value)
env = StreamExecutionEnvironment.get_execution_environment(configuration)
numbers = env.from_collection(list(range(20)), type_info=Types.LONG())
sums = numbers.key_by(lambda n: n % 2, Types.LONG()).reduce(lambda a, b: a + b)
with sums.execute_and_collect() as rows:
    print("last:", max(rows), flush=True)
sys.stdin.readline()
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkCluster]:
    with SparkCluster(workers=1, configuration=SECURED) as made:
        yield made


def started(directory: Path, settings: dict[str, str], **variables: str) -> subprocess.Popen[str]:
    """The program with these settings, in a process of its own that waits for a line at its end."""
    (directory / "settings.json").write_text(json.dumps(settings))
    (directory / "job.py").write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "PYSPARK_PYTHON": sys.executable, **variables}
    return subprocess.Popen(
        [sys.executable, "job.py"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, env=environment, cwd=directory,
    )  # fmt: skip


def test_a_job_runs_and_no_command_line_has_the_secret(cluster: SparkCluster, tmp_path: Path) -> None:
    settings = {**cluster.settings(), "spark.authenticate.secret": SECRET}  # a program may give it as well
    with started(tmp_path, settings, SPARK_CONF_DIR=str(cluster.conf_dir)) as job:
        assert job.stdout is not None
        lines = []
        while not lines or ("last:" not in lines[-1] and lines[-1]):
            lines.append(job.stdout.readline())
        assert lines[-1] == "last: 100\n", lines
        shown = [each.command for each in processes() if SECRET in each.command]
        job.communicate("\n")
    assert shown == []


def test_a_client_without_the_secret_is_refused(cluster: SparkCluster, tmp_path: Path) -> None:
    log = cluster._directory / "master.log"
    before = log.read_text(errors="replace")
    job = started(tmp_path, cluster.settings())
    try:
        deadline = time.monotonic() + 60
        said = ""
        while "AuthRpcHandler" not in said and time.monotonic() < deadline and job.poll() is None:
            time.sleep(0.1)
            said = log.read_text(errors="replace").removeprefix(before)
        assert "AuthRpcHandler" in said
        assert "Registering app" not in said
    finally:
        job.kill()
        job.communicate()
