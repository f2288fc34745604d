"""Graphs for every contestant: R-MAT edges as Parquet and as text, a small graph for the check, and what it must give.

Promises: a graph of a size is made once, under .bench, in files as many as the parallelism; the same seed everywhere.
Does not know: any engine."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from benchmarks import common

CACHE = Path(__file__).resolve().parent.parent / ".bench"
ROUNDS = 20
DAMPING = 0.85
CHECK_VERTICES = 1_000
_EDGES_PER_VERTEX = 16
_QUADRANTS = (0.57, 0.19, 0.19)  # those of Graph500
_CHUNK = 1_000_000


def edges_folder(edges: int) -> Path:
    """The folder with `parquet/` and `text/` of an R-MAT graph with so many edges; 0 is the graph of the check."""
    folder = CACHE / f"graph-{edges}"
    if not (folder / "whole").exists():
        shutil.rmtree(folder, ignore_errors=True)
        for name in ("parquet", "text"):
            (folder / name).mkdir(parents=True)
        sources, targets = draw_rmat(edges) if edges else check_edges()
        for part in range(common.PARALLELISM):
            rows = slice(part * len(sources) // common.PARALLELISM, (part + 1) * len(sources) // common.PARALLELISM)
            table = pa.table({"source": sources[rows], "target": targets[rows]})
            pa.parquet.write_table(table, folder / "parquet" / f"part-{part}.parquet")
            options = pa.csv.WriteOptions(include_header=False, delimiter=" ")
            pa.csv.write_csv(table, folder / "text" / f"part-{part}.txt", options)
        (folder / "whole").touch()
    return folder


def draw_rmat(edges: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Sources and targets of an R-MAT graph."""
    scale = max(1, (edges // _EDGES_PER_VERTEX - 1).bit_length())
    chance = np.random.default_rng(seed)
    sources, targets = np.zeros(edges, dtype=np.int64), np.zeros(edges, dtype=np.int64)
    first, second, third = np.cumsum(_QUADRANTS)
    for start in range(0, edges, _CHUNK):
        rows = slice(start, min(start + _CHUNK, edges))
        for _ in range(scale):
            drawn = chance.random(rows.stop - rows.start)
            down, right = drawn >= second, ((drawn >= first) & (drawn < second)) | (drawn >= third)
            sources[rows] = 2 * sources[rows] + down
            targets[rows] = 2 * targets[rows] + right
    return sources, targets


def check_edges() -> tuple[np.ndarray, np.ndarray]:
    """Two components in which each vertex has incoming and outgoing edges, so that all ways to rank agree."""
    half = CHECK_VERTICES // 2
    number = np.arange(CHECK_VERTICES, dtype=np.int64)
    base = number // half * half
    places = number - base
    targets = [base + (places + 1) % half, base + (places * 7 + 3) % half, base + places * places % half]
    return np.tile(number, 3), np.concatenate(targets)


def read_rows(output: str) -> Iterable[tuple[int, float]]:
    """The rows of Parquet files."""
    rows = pyarrow.parquet.read_table(output).to_pydict()
    return zip(rows["vertex"], rows["value"], strict=True)


def contest(
    args: argparse.Namespace,
    directory: str,
    run: Callable[[Path, str], None],
    read: Callable[[str], Iterable[tuple[int, float]]] = read_rows,
) -> None:
    """Check, or measure after a small run, which warms up. `run` gets a folder of edges and writes its results."""

    def check() -> dict[str, int]:
        run(edges_folder(0), f"{directory}/small")
        rows = read(f"{directory}/small")
        return components_digest(rows) if args.task == "components" else ranks_digest(rows)  # type: ignore[arg-type]

    def measure() -> dict[str, float]:
        run(edges_folder(0), f"{directory}/small")
        folder = edges_folder(args.records)
        taken = common.seconds(lambda: run(folder, f"{directory}/measured"))
        return {"records": args.records, "seconds": taken, "us_per_edge": taken * 1_000_000 / args.records}

    common.contest(args, check, measure)


def components_digest(rows: Iterable[tuple[int, int]]) -> dict[str, int]:
    """The digest of (vertex, least vertex of its component)."""
    return common.digest((int(vertex), int(label)) for vertex, label in rows)


def ranks_digest(rows: Iterable[tuple[int, float]]) -> dict[str, int]:
    """The digest of (vertex, rank), where the average rank is one."""
    ranks = dict(rows)
    average = sum(ranks.values()) / len(ranks)
    return common.digest((int(vertex), f"{rank / average:.4f}") for vertex, rank in sorted(ranks.items()))


def compute_ranks(sources: np.ndarray, targets: np.ndarray, count: int) -> np.ndarray:
    """The ranks after all rounds, as a plain loop over arrays."""
    degrees = np.bincount(sources, minlength=count)
    ranks = np.full(count, 1 / count)
    for _ in range(ROUNDS):
        shares = ranks / np.maximum(degrees, 1)
        received = np.bincount(targets, weights=shares[sources], minlength=count)
        lost = ranks[degrees == 0].sum() / count
        ranks = (1 - DAMPING) / count + DAMPING * (received + lost)
    return ranks


def expected_components() -> dict[str, int]:
    """The digest of the components of the check."""
    half = CHECK_VERTICES // 2
    return components_digest((vertex, vertex // half * half) for vertex in range(CHECK_VERTICES))


def expected_ranks() -> dict[str, int]:
    """The digest of the ranks of the check."""
    return ranks_digest(enumerate(compute_ranks(*check_edges(), CHECK_VERTICES).tolist()))


def draw_path(vertices: int) -> pa.Table:
    """The edges of a path whose vertices have random ids."""
    ids = np.random.default_rng(3).permutation(vertices)
    return pa.table({"source": ids[:-1], "target": ids[1:]})


def expected_path_labels() -> dict[str, int]:
    """The digest of the labels of a path of 1,000 vertices after 20 rounds, of which the first only sends."""
    table = draw_path(1_000)
    sources, targets = table["source"].to_numpy(), table["target"].to_numpy()
    labels = np.arange(1_000)
    for _ in range(19):
        before = labels.copy()
        np.minimum.at(labels, targets, before[sources])
        np.minimum.at(labels, sources, before[targets])
    return common.digest(enumerate(labels.tolist()))
