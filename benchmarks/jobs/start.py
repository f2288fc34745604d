"""From nothing to the answer of a first SQL query in batch mode: JVM, Spark, planning, Catalyst.

Promises: with `--archive yes` Spark's classes are in the archive before the clock starts, with `no` there is none.
Does not know: how the two compare."""

from __future__ import annotations

import os
import tempfile

from benchmarks import common

from millstream.engine.spark import class_archive
from millstream.engine.spark.java import find_java
from millstream.table import EnvironmentSettings, TableEnvironment

QUERY = "SELECT k, COUNT(*), SUM(v) FROM (VALUES (1, 2), (1, 3), (2, 4)) AS t (k, v) GROUP BY k ORDER BY k"


def ask() -> list[tuple[object, ...]]:
    """The rows of the query, from a new session."""
    env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    return [tuple(row) for row in env.sql_query(QUERY).execute().collect()]


def main() -> None:
    """Start, ask, and tell the seconds."""
    args = common.arguments(__doc__, archive="yes")
    if args.archive == "yes":
        class_archive.create_archive(find_java())
    else:
        os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="millstream-start-")
        find_java()  # writes what a first start of all would write
    os.environ[class_archive.IN_BACKGROUND] = "false"  # it would take time from what is measured
    common.contest(args, lambda: common.digest(ask()), lambda: {"seconds": common.seconds(ask)})


if __name__ == "__main__":
    main()
