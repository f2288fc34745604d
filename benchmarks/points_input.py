"""Points for k-means, the same for every contestant: clusters that are far apart, in Parquet files.

Promises: points of a number are made once, under .bench; in the check there are two clusters, which every start finds.
Does not know: any engine."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from benchmarks import common

CACHE = Path(__file__).resolve().parent.parent / ".bench"
DIMENSIONS = 20
CLUSTERS = 10
ROUNDS = 20
CHECK_POINTS = 3_000
_CHUNK = 500_000


def points_folder(points: int, clusters: int = CLUSTERS) -> Path:
    """The folder with Parquet files of a column `features`."""
    folder = CACHE / f"points-{points}-{clusters}"
    if not (folder / "whole").exists():
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "parquet").mkdir(parents=True)
        chance = np.random.default_rng(7)
        centers = chance.normal(scale=30, size=(clusters, DIMENSIONS))
        for number, start in enumerate(range(0, points, _CHUNK)):
            count = min(_CHUNK, points - start)
            # one of three is in the first cluster, so that clusters have different sizes
            chosen = np.where(np.arange(count) % 3 == 0, 0, np.arange(count) % clusters)
            values = centers[chosen] + chance.normal(size=(count, DIMENSIONS))
            offsets = pa.array(np.arange(0, values.size + 1, DIMENSIONS, dtype=np.int32))
            features = pa.ListArray.from_arrays(offsets, pa.array(values.ravel()))
            pa.parquet.write_table(pa.table({"features": features}), folder / "parquet" / f"part-{number}.parquet")
        (folder / "whole").touch()
    return folder / "parquet"


def contest(args: argparse.Namespace, train: Callable[[Path, int], Iterable[Iterable[float]]]) -> None:
    """Check, or measure after a small run, which warms up. `train` gets a folder of points and a number of clusters."""

    def measure() -> dict[str, float]:
        train(points_folder(CHECK_POINTS, 2), 2)
        folder = points_folder(args.records)
        return {"records": args.records, "seconds": common.seconds(lambda: train(folder, CLUSTERS))}

    common.contest(args, lambda: centers_digest(train(points_folder(CHECK_POINTS, 2), 2)), measure)


def centers_digest(centers: Iterable[Iterable[float]]) -> dict[str, int]:
    """The digest of the centers of the check, rounded, in order."""
    return common.digest(sorted(tuple(f"{number:.1f}" for number in center) for center in centers))


def expected_centers() -> dict[str, int]:
    """The digest of the means of the two clusters of the check: the sign of a projection tells them apart."""
    folder = points_folder(CHECK_POINTS, 2)
    column = pyarrow.parquet.read_table(folder / "part-0.parquet")["features"].combine_chunks()
    values = column.flatten().to_numpy().reshape(-1, DIMENSIONS)
    axis = values[0] - values[1]  # a point of each cluster
    first = (values - (values[0] + values[1]) / 2) @ axis > 0
    return centers_digest([values[first].mean(axis=0).tolist(), values[~first].mean(axis=0).tolist()])
