"""Connected components and PageRank in millstream, from Parquet files to Parquet files.

Promises: the time is that of a whole job in a session that has run one before: reading, all rounds, writing, ending.
Does not know: peers, or how the times are compared."""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks import common, graph_input
from benchmarks.jobs.epochs import environment

from millstream.gelly import Graph
from millstream.table import StreamTableEnvironment


def run(task: str, engine: str, folder: Path, output: str) -> None:
    """Read the edges of a folder, and write one row for each vertex."""
    env = environment(**{"millstream.engine": engine, "spark.driver.memory": "1g"})
    tables = StreamTableEnvironment.create(env)
    tables.execute_sql(
        "CREATE TABLE edges (source BIGINT, target BIGINT) WITH ('connector' = 'filesystem', 'format' = 'parquet', "
        f"'path' = '{folder / 'parquet'}')"
    )
    kind = "BIGINT" if task == "components" else "DOUBLE"
    tables.execute_sql(
        f"CREATE TABLE results (vertex BIGINT, `value` {kind}) WITH ('connector' = 'filesystem', 'format' = 'parquet', "
        f"'path' = '{output}')"
    )
    graph = Graph.from_table(tables.from_path("edges"))
    result = graph.connected_components() if task == "components" else graph.page_rank(graph_input.ROUNDS)
    tables.from_data_stream(result).execute_insert("results").wait()


def main() -> None:
    """Check or measure."""
    args = common.arguments(__doc__, task="components", engine="resident", records=10_000_000)
    with tempfile.TemporaryDirectory() as directory:
        graph_input.contest(args, directory, lambda folder, output: run(args.task, args.engine, folder, output))


if __name__ == "__main__":
    main()
