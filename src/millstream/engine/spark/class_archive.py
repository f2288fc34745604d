"""A class data sharing (CDS) archive of Spark's classes, with which Spark starts faster.

Promises: the archive is created once for a Java and a Spark, atomically, with the classes that small jobs load. The
wrapper of Java (`java`) passes it to the JVM; a JVM that it does not fit starts without it. The first start of a local
Spark creates it in the background, in a process with the lowest priority that survives the program.
Does not know: who starts Java later."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from millstream.engine.spark.java import JavaHome, find_java
from millstream.errors import ExternalError

#: The environment variable that decides whether the archive is created in the background; `false`: it is not.
IN_BACKGROUND = "MILLSTREAM_CLASS_ARCHIVE"
_SECONDS = 600
_LOWEST_PRIORITY = 19
_running: list[subprocess.Popen[bytes]] = []  # Python warns when it deletes the object of a running process
_CLASS = re.compile(r"[\w/$]+")  # all other lines name classes that Java generates at run time
_PROGRAM = """
import sys
from pyspark.sql import SparkSession
from millstream.engine.spark import session
flags = f"-XX:+UseSerialGC -Xshare:off -XX:DumpLoadedClassList={sys.argv[1]}"
context = session.spark_context({
    "millstream.spark.master": "local[1]",
    "spark.driver.extraJavaOptions": flags,
}, 1)
pairs = context.parallelize([(1, 2)] * 10, 2).partitionBy(2).cache()
assert pairs.union(pairs).count() == 20
spark = SparkSession(context)
numbers = spark.range(10).selectExpr("id % 3 AS k", "CAST(id AS STRING) AS s")
sums = numbers.groupBy("k").count().join(numbers, "k").orderBy("s").collect()
assert len(sums) == 10
print(context._jvm.java.lang.System.getProperty("java.class.path"))
session.stop()
"""


class ClassesNotArchived(ExternalError):
    """Java did not create the archive."""

    hint = "Spark runs without the archive, but starts more slowly"

    def __init__(self, output: str) -> None:
        lines = output.strip().splitlines()
        super().__init__(f"Spark's classes could not be archived: {lines[-1] if lines else 'no reason was given'}")


def create_archive(java: JavaHome) -> Path:
    """Return the archive for a Java. It is created if there is none, which takes a minute."""
    if java.archive is None:
        message = "there is no home directory for it"
        raise ClassesNotArchived(message)
    if not java.archive.exists():
        try:
            java.archive.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".archive-", dir=java.archive.parent) as folder:
                _create(java, Path(folder)).replace(java.archive)
        except OSError as problem:
            raise ClassesNotArchived(str(problem)) from problem
    return java.archive


def create_in_background(java: JavaHome, environment: Mapping[str, str]) -> subprocess.Popen[bytes] | None:
    """Start a process that creates the archive for a Java; None if there is one, or if this was tried before."""
    if java.archive is None or java.archive.exists() or environment.get(IN_BACKGROUND, "true").lower() == "false":
        return None
    try:
        java.archive.parent.mkdir(parents=True, exist_ok=True)
        java.archive.with_suffix(".tried").touch(exist_ok=False)
        process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**environment, IN_BACKGROUND: "false", "PYTHONPATH": os.pathsep.join(sys.path)},
            start_new_session=True,  # so that it survives the program, and Ctrl-C
        )
    except OSError:  # it was tried before, or the directory cannot be written
        return None
    _running.append(process)
    return process


def _create(java: JavaHome, folder: Path) -> Path:
    names, draft = folder / "names", folder / "draft.jsa"
    path = _output_of([sys.executable, "-c", _PROGRAM, str(names)]).strip().splitlines()[-1]
    names.write_text("\n".join(filter(_CLASS.fullmatch, names.read_text().splitlines())))
    dump = ["-Xshare:dump", f"-XX:SharedClassListFile={names}", f"-XX:SharedArchiveFile={draft}", "-Xlog:disable"]
    _output_of([str(java.java), "-XX:+UseSerialGC", "-cp", path, *dump])
    if not draft.exists():
        message = "Java wrote no archive"
        raise ClassesNotArchived(message)
    return draft


def _output_of(command: list[str]) -> str:
    """Run a program and return its standard output."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    try:
        process = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, check=False, env=environment
        )
    except subprocess.TimeoutExpired as problem:
        raise ClassesNotArchived(str(problem)) from problem
    if process.returncode != 0:
        raise ClassesNotArchived(process.stderr or process.stdout)
    return process.stdout


if __name__ == "__main__":
    os.nice(_LOWEST_PRIORITY)
    create_archive(find_java())
