"""Connected components and PageRank in one process without recovery: networkx, SciPy, and a recursive query of DuckDB.

Promises: from the same Parquet files to Parquet files; the time includes reading and writing.
Does not know: other peers, or how the times are compared."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from benchmarks import common, graph_input

import numpy as np
import pyarrow as pa
import pyarrow.parquet

_DUCKDB = """
COPY (
    WITH RECURSIVE edges AS (SELECT source, target FROM read_parquet('{edges}/*.parquet')),
    links AS (SELECT source, target FROM edges UNION SELECT target, source FROM edges),
    labels(vertex, value) USING KEY (vertex) AS (
        SELECT DISTINCT source, source FROM links
        UNION
        SELECT links.target, min(labels.value)
        FROM labels JOIN links ON links.source = labels.vertex JOIN recurring.labels AS known ON known.vertex = links.target
        GROUP BY links.target, known.value HAVING min(labels.value) < known.value
    )
    SELECT vertex, value FROM labels
) TO '{output}' (FORMAT parquet)
"""


def run_duckdb(task: str, folder: Path, output: str) -> None:
    """A recursive query with a key; ranks change in every round, which such a query cannot express well."""
    import duckdb

    if task != "components":
        message = "DuckDB is a peer for components only"
        raise SystemExit(message)
    duckdb.connect().execute(f"SET threads = {common.PARALLELISM}").execute(
        _DUCKDB.format(edges=folder / "parquet", output=output)
    )


def run_networkx(task: str, folder: Path, output: str) -> None:
    """Dictionaries of dictionaries. Its own PageRank is SciPy's, so the rounds here are a loop over its graph."""
    import networkx

    sources, targets = _read(folder)
    graph = networkx.MultiDiGraph()
    graph.add_edges_from(zip(sources.tolist(), targets.tolist(), strict=True))
    if task == "components":
        found = {vertex: min(group) for group in networkx.weakly_connected_components(graph) for vertex in group}
    else:
        found = _rank(graph)
    _write(output, np.fromiter(found, np.int64, len(found)), np.array(list(found.values())))


def _rank(graph: Any) -> dict[int, float]:
    """The ranks after all rounds."""
    ranks = dict.fromkeys(graph, 1 / len(graph))
    for _ in range(graph_input.ROUNDS):
        received = dict.fromkeys(graph, 0.0)
        lost = 0.0
        for vertex, rank in ranks.items():
            degree = graph.out_degree(vertex)
            if not degree:
                lost += rank
                continue
            share = rank / degree
            for target, parallel in graph.adj[vertex].items():
                received[target] += share * len(parallel)
        base = (1 - graph_input.DAMPING + graph_input.DAMPING * lost) / len(graph)
        ranks = {vertex: base + graph_input.DAMPING * value for vertex, value in received.items()}
    return ranks


def run_scipy(task: str, folder: Path, output: str) -> None:
    """Sparse matrices."""
    from scipy import sparse

    sources, targets = _read(folder)
    ids, places = np.unique(np.concatenate((sources, targets)), return_inverse=True)
    sources, targets = places[: len(sources)], places[len(sources) :]
    shape = len(ids), len(ids)
    if task == "components":
        matrix = sparse.csr_matrix((np.ones(len(sources), np.int8), (sources, targets)), shape)
        _, labels = sparse.csgraph.connected_components(matrix, connection="weak")
        least = np.full(labels.max() + 1, ids[-1])
        np.minimum.at(least, labels, ids)
        _write(output, ids, least[labels])
        return
    degrees = np.bincount(sources, minlength=len(ids))
    weights = 1 / degrees[sources]
    matrix = sparse.csr_matrix((weights, (targets, sources)), shape)
    ranks = np.full(len(ids), 1 / len(ids))
    for _ in range(graph_input.ROUNDS):
        lost = ranks[degrees == 0].sum()
        ranks = (1 - graph_input.DAMPING + graph_input.DAMPING * lost) / len(ids) + graph_input.DAMPING * (
            matrix @ ranks
        )
    _write(output, ids, ranks)


def _read(folder: Path) -> tuple[Any, Any]:
    table = pyarrow.parquet.read_table(folder / "parquet")
    return table["source"].to_numpy(), table["target"].to_numpy()


def _write(output: str, vertices: Any, values: Any) -> None:
    pyarrow.parquet.write_table(pa.table({"vertex": vertices, "value": values}), output)


def main() -> None:
    """Check or measure."""
    args = common.arguments(__doc__, task="components", way="scipy", records=10_000_000)
    run = {"duckdb": run_duckdb, "networkx": run_networkx, "scipy": run_scipy}[args.way]
    with tempfile.TemporaryDirectory() as directory:
        graph_input.contest(args, directory, lambda folder, output: run(args.task, folder, output))


if __name__ == "__main__":
    main()
