"""The benchmarks of iterations as values: graphs, learning and entities.

Promises: frozen; the order here is the order of running and of the table.
Does not know: processes, environments, files."""

from __future__ import annotations

from benchmarks.contest import Benchmark, Contestant, Goal

Options = tuple[tuple[str, int | str], ...]
_RESIDENT = ("engine", "resident")


def _ours(name: str, script: str, *options: tuple[str, int | str]) -> Contestant:
    return Contestant(name, f"jobs/{script}.py", "millstream", (*options, _RESIDENT))


def _graph(task: str, title: str, *more: Contestant) -> Benchmark:
    options: Options = (("task", task), ("records", 10_000_000))

    def spark(name: str, way: str) -> Contestant:
        return Contestant(name, "peers/spark_graph.py", "spark", (*options, ("way", way)), (Goal(5),))

    def single(name: str, way: str, goal: float) -> Contestant:
        return Contestant(name, "peers/single_graph.py", "millstream", (*options, ("way", way)), (Goal(goal),))

    return Benchmark(
        name=f"graph-{task}",
        title=f"{title} of an R-MAT graph with 10,000,000 edges, Parquet to Parquet, parallelism 2",
        figure="seconds",
        unit="s",
        ours=_ours("millstream", "graph", *options),
        peers=(
            spark("GraphX", "graphx"),
            spark("Spark RDDs", "rdd"),
            single("networkx, one process", "networkx", 20),
            single("SciPy, one process", "scipy", 0.25),
            *more,
        ),
        higher_is_better=False,
        digest=f"graph-{task}",
    )


_DUCKDB = Contestant(
    "DuckDB, recursive query",
    "peers/single_graph.py",
    "millstream",
    (("task", "components"), ("records", 10_000_000), ("way", "duckdb")),
)
_RANKS: Options = (("task", "pagerank"),)
_PATH: Options = (("keys", 100_000), ("records", 300))
_POINTS: Options = (("records", 10_000_000),)

ITERATIONS = (
    _graph("components", "Connected components", _DUCKDB),
    _graph("pagerank", "PageRank, 20 rounds,"),
    Benchmark(
        name="graph-growth",
        title="PageRank, 20 rounds, parallelism 2: the cost of an edge",
        figure="us_per_edge",
        unit="us an edge",
        ours=_ours("1,000,000 edges", "graph", *_RANKS, ("records", 1_000_000)),
        peers=(
            Contestant(
                "30,000,000 edges",
                "jobs/graph.py",
                "millstream",
                (*_RANKS, ("records", 30_000_000), _RESIDENT),
                (Goal(at_most=1.3),),
            ),
        ),
        growth=True,
        digest="graph-pagerank",
    ),
    Benchmark(
        name="delta",
        title="A round of connected components on a path of 100,000 vertices, after round 100, parallelism 2",
        figure="round_ms",
        unit="ms",
        ours=_ours("delta", "delta", ("way", "delta"), *_PATH),
        peers=(Contestant("bulk", "jobs/delta.py", "millstream", (("way", "bulk"), *_PATH, _RESIDENT), (Goal(10),)),),
        higher_is_better=False,
        digest="path-labels",
    ),
    Benchmark(
        name="kmeans",
        title="k-means, 10,000,000 points of 20 dimensions, 10 clusters, 20 rounds, from Parquet, parallelism 2",
        figure="seconds",
        unit="s",
        ours=_ours("millstream", "kmeans", *_POINTS),
        peers=(
            Contestant("Spark ML", "peers/other_kmeans.py", "spark", (("way", "spark"), *_POINTS), (Goal(1),)),
            Contestant(
                "scikit-learn, one process", "peers/other_kmeans.py", "millstream", (("way", "sklearn"), *_POINTS)
            ),
        ),
        higher_is_better=False,
        digest="kmeans",
    ),
    Benchmark(
        name="entities",
        title="Messages between 100,000 entities, each passed on three times, parallelism 2",
        figure="rate",
        unit="messages/s",
        ours=_ours("millstream", "entities", ("base", 50_000), ("records", 500_000)),
        peers=(
            Contestant(
                "PyFlink, thread mode",
                "peers/pyflink_entities.py",
                "flink",
                (("base", 10_000), ("records", 100_000), ("mode", "thread")),
                (Goal(20),),
                warm_up=20.0,
                timed=20.0,
            ),
        ),
        digest="entities",
    ),
)
