"""A Java that starts from the archive of Spark's classes, and one for which the archive is invalid."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from millstream.engine.spark import class_archive
from millstream.engine.spark.java import find_java

pytestmark = pytest.mark.spark

JARS = f"{importlib.util.find_spec('pyspark').submodule_search_locations[0]}/jars/*"
FEW = f"""
import sys
lines = ["java/lang/Object", "org/apache/spark/launcher/Main", "@lambda-proxy and so on"]
open(sys.argv[1], "w").write("\\n".join(lines))
print({JARS!r})
"""


def java_output(home: Path, *arguments: str) -> str:
    """The output of Java itself, before that of the program."""
    command = [str(home / "bin" / "java"), *arguments, "-cp", JARS, "org.apache.spark.launcher.Main"]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False).stdout


def test_java_loads_classes_from_a_matching_archive(tmp_path, monkeypatch):
    java = find_java({**os.environ, "XDG_CACHE_HOME": str(tmp_path)})
    monkeypatch.setattr(class_archive, "_PROGRAM", "raise SystemExit('no Spark here')")
    with pytest.raises(class_archive.ClassesNotArchived, match="no Spark here"):
        class_archive.create_archive(java)
    assert [file.name for file in (tmp_path / "millstream").iterdir()] == [java.home.name], "nothing half-made stays"
    read = "org.apache.spark.launcher.Main source: "
    assert f"{read}shared" not in java_output(java.home, "-Xlog:class+load")
    monkeypatch.setattr(class_archive, "_PROGRAM", FEW)
    archive = class_archive.create_archive(java)
    assert class_archive.create_archive(java) == archive == java.archive
    assert f"{read}shared objects file" in java_output(java.home, "-Xlog:class+load")
    archive.write_bytes(b"of another Java")
    assert java_output(java.home) == "", "what does not fit is passed over without a word"
    assert f"{read}" in java_output(java.home, "-Xlog:class+load")


def test_the_first_start_creates_the_archive_in_the_background_once(tmp_path):
    environment = {key: value for key, value in os.environ.items() if key != class_archive.IN_BACKGROUND}
    java = find_java({**environment, "XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert class_archive.create_in_background(java, {**environment, class_archive.IN_BACKGROUND: "false"}) is None
    process = class_archive.create_in_background(java, {**environment, "XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert process is not None
    try:
        assert os.getsid(process.pid) == process.pid, "it survives the program"
        assert class_archive.create_in_background(java, environment) is None, "it is tried once"
    finally:
        process.kill()
        process.wait()
    read_only = replace(java, archive=Path("/proc/no/such/folder/spark.jsa"))
    assert class_archive.create_in_background(read_only, environment) is None


def test_an_existing_archive_is_not_created_again(tmp_path):
    java = find_java({**os.environ, "XDG_CACHE_HOME": str(tmp_path)})
    java.archive.write_bytes(b"")
    assert class_archive.create_in_background(java, {}) is None
