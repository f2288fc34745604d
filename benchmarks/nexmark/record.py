"""Record what the real Flink leaves behind of each Nexmark query.

    PYTHON_WITH_APACHE_FLINK benchmarks/nexmark/record.py [query ...]

Promises: one file for each query below tests/golden/nexmark; streaming mode at parallelism 1, batch mode for q6,
which Flink has no streaming plan for.
Does not know: millstream."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "tests" / "sql")]

from benchmarks.nexmark import files, golden, program  # noqa: E402
from pyflink.table import EnvironmentSettings, TableEnvironment  # noqa: E402

from record import run_query  # noqa: E402


def environment(query: str, events: Path) -> TableEnvironment:
    """A session with the tables."""
    batch = query in golden.BATCH
    env = TableEnvironment.create(
        EnvironmentSettings.in_batch_mode() if batch else EnvironmentSettings.in_streaming_mode()
    )
    env.get_config().set("parallelism.default", "1")
    env.get_config().set("table.local-time-zone", "UTC")
    program.create_tables(env, program.json_files(events))
    return env


def record(query: str, folder: Path) -> None:
    """Run a query and keep its rows."""
    env = environment(query, files.written(folder, golden.NEXMARK, golden.events(query)))
    places = {"OUTPUT": str(folder / "output"), "SIDE_INPUT": program.csv_file(files.side_input(folder))}
    *before, insert = program.statements(query, places)
    for statement in before:
        env.execute_sql(statement)
    sql = golden.ASKED.get(query, program.selected(insert)).replace("count_char(extra, 'c')", golden.COUNT_CHAR)
    changelog = run_query(env, sql)["changelog"]
    if query in golden.KEYS:
        changelog = golden.last_of_each(changelog, golden.KEYS[query])
    lines = golden.left(changelog)
    golden.FOLDER.mkdir(parents=True, exist_ok=True)
    (golden.FOLDER / f"{query}.txt").write_text(golden.text_of(lines))
    print(query, len(lines), "rows", flush=True)


def main() -> None:
    """Record the queries named, or all."""
    with tempfile.TemporaryDirectory() as folder:
        for query in sys.argv[1:] or [*program.QUERIES, *program.PATTERNS]:
            record(query, Path(folder))


if __name__ == "__main__":
    main()
