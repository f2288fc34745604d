"""Connected components and PageRank on Spark: GraphX of the same Spark, and RDD code like that of Spark's own examples.

Promises: GraphX reads the edges as text, which its loader needs, and the RDD code reads the Parquet files; both write a
row for each vertex. The time is that of a whole run in a session that has run one before.
Does not know: other peers, or how the times are compared."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from benchmarks import common, graph_input
from benchmarks.peers import spark_session


def run_graphx(spark: Any, task: str, folder: Path, output: str) -> None:
    """GraphX, called through its JVM classes."""
    jvm = spark.sparkContext._jvm
    level = jvm.org.apache.spark.storage.StorageLevel.MEMORY_AND_DISK()
    context = spark.sparkContext._jsc.sc()
    loader = getattr(jvm.org.apache.spark.graphx, "GraphLoader$").__getattr__("MODULE$")
    graph = loader.edgeListFile(context, str(folder / "text"), False, common.PARALLELISM, level, level)
    integer = jvm.scala.reflect.ClassTag.Int()
    if task == "components":
        algorithm = getattr(jvm.org.apache.spark.graphx.lib, "ConnectedComponents$").__getattr__("MODULE$")
        result = algorithm.run(graph, integer, integer)
    else:
        algorithm = getattr(jvm.org.apache.spark.graphx.lib, "PageRank$").__getattr__("MODULE$")
        result = algorithm.run(graph, graph_input.ROUNDS, 1 - graph_input.DAMPING, integer, integer)
    result.vertices().saveAsTextFile(output)


def run_rdd(spark: Any, task: str, folder: Path, output: str) -> None:
    """Joins and reductions of RDDs: one job for each round."""
    edges = spark.read.parquet(str(folder / "parquet")).rdd.map(lambda row: (row[0], row[1]))
    parts = common.PARALLELISM
    if task == "components":
        neighbors = edges.flatMap(lambda edge: (edge, edge[::-1])).distinct().groupByKey(parts).cache()
        labels = neighbors.mapValues(lambda _: 0).map(lambda pair: (pair[0], pair[0])).partitionBy(parts).cache()
        changed = 1
        while changed:
            sent = neighbors.join(labels, parts).flatMap(
                lambda item: [(neighbor, item[1][1]) for neighbor in item[1][0]]
            )
            least = labels.union(sent).reduceByKey(min, parts).cache()
            changed = least.join(labels, parts).filter(lambda item: item[1][0] != item[1][1]).count()
            labels.unpersist()
            labels = least
        result = labels
    else:
        links = edges.groupByKey(parts).cache()
        ranks = links.mapValues(lambda _: 1.0)
        for _ in range(graph_input.ROUNDS):
            shares = links.join(ranks, parts).flatMap(
                lambda item: [(target, item[1][1] / len(item[1][0])) for target in item[1][0]]
            )
            ranks = shares.reduceByKey(float.__add__, parts).mapValues(
                lambda rank: rank * graph_input.DAMPING + 1 - graph_input.DAMPING
            )
        result = ranks
    result.map(lambda pair: f"({pair[0]},{pair[1]})").saveAsTextFile(output)


def read_pairs(output: str) -> list[tuple[int, float]]:
    """The rows of a run."""
    lines = (line for part in Path(output).glob("part-*") for line in part.read_text().splitlines())
    pairs = (line.strip("()").split(",") for line in lines)
    return [(int(vertex), float(value)) for vertex, value in pairs]


def main() -> None:
    """Check or measure."""
    args = common.arguments(__doc__, task="components", way="graphx", records=10_000_000)
    run = run_graphx if args.way == "graphx" else run_rdd
    spark = spark_session.session()
    with tempfile.TemporaryDirectory() as directory:
        graph_input.contest(args, directory, lambda folder, output: run(spark, args.task, folder, output), read_pairs)
    spark.stop()


if __name__ == "__main__":
    main()
