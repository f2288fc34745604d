"""An archive of Spark's classes as Java has read and checked them, from which Spark starts sooner.

Promises: it is made once for a Java and a Spark, whole or not at all, of the classes that small jobs take. A Java finds
it by itself (`java`), and one that it does not fit starts as if there were none.
Does not know: who starts Java later."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from millstream.engine.spark.java import JavaHome
from millstream.errors import ExternalError

_SECONDS = 600
_CLASS = re.compile(r"[\w/$]+")  # other lines tell of code that Java makes as it runs
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
sums = numbers.groupBy("k").count().join(numbers, "k").orderBy("s").toArrow()
assert sums.num_rows == 10
print(context._jvm.java.lang.System.getProperty("java.class.path"))
session.stop()
"""


class ClassesNotArchived(ExternalError):
    """Java did not make the archive."""

    hint = "Spark runs without it, and starts as before"

    def __init__(self, said: str) -> None:
        lines = said.strip().splitlines()
        super().__init__(f"Spark's classes could not be archived: {lines[-1] if lines else 'no reason was given'}")


def made(java: JavaHome) -> Path:
    """The archive for a Java, made if there is none; that takes a minute."""
    if java.archive is None:
        message = "there is no home directory to keep it in"
        raise ClassesNotArchived(message)
    if not java.archive.exists():
        try:
            java.archive.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".archive-", dir=java.archive.parent) as folder:
                _make(java, Path(folder)).replace(java.archive)
        except OSError as problem:
            raise ClassesNotArchived(str(problem)) from problem
    return java.archive


def _make(java: JavaHome, folder: Path) -> Path:
    names, draft = folder / "names", folder / "draft.jsa"
    path = _answer([sys.executable, "-c", _PROGRAM, str(names)]).strip().splitlines()[-1]
    names.write_text("\n".join(filter(_CLASS.fullmatch, names.read_text().splitlines())))
    dump = ["-Xshare:dump", f"-XX:SharedClassListFile={names}", f"-XX:SharedArchiveFile={draft}", "-Xlog:disable"]
    _answer([str(java.java), "-XX:+UseSerialGC", "-cp", path, *dump])
    if not draft.exists():
        message = "Java wrote none"
        raise ClassesNotArchived(message)
    return draft


def _answer(command: list[str]) -> str:
    """What a program prints, whose end may be waited for so long."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False, env=environment)
    except subprocess.TimeoutExpired as problem:
        raise ClassesNotArchived(str(problem)) from problem
    if done.returncode != 0:
        raise ClassesNotArchived(done.stderr or done.stdout)
    return done.stdout
