"""K-means of Spark ML and of scikit-learn on the same Parquet files.

Promises: as many rounds; no tolerance ends them earlier. scikit-learn holds all points in one process.
Does not know: other peers, or how the times are compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks import common, points_input


def train_with_spark(spark: Any, folder: Path, clusters: int) -> list[list[float]]:
    """The centers after all rounds."""
    from pyspark.ml.clustering import KMeans
    from pyspark.ml.functions import array_to_vector

    frame = spark.read.parquet(str(folder))
    frame = frame.select(array_to_vector("features").alias("features")).cache()
    model = KMeans(k=clusters, maxIter=points_input.ROUNDS, tol=0.0, seed=1, initMode="random").fit(frame)
    centers = [center.tolist() for center in model.clusterCenters()]
    frame.unpersist()
    return centers


def train_with_sklearn(folder: Path, clusters: int) -> list[list[float]]:
    """The centers after all rounds."""
    import pyarrow.parquet
    from sklearn.cluster import KMeans

    column = pyarrow.parquet.read_table(folder)["features"].combine_chunks()
    values = column.flatten().to_numpy().reshape(-1, points_input.DIMENSIONS)
    model = KMeans(clusters, init="random", n_init=1, max_iter=points_input.ROUNDS, tol=0.0, random_state=1)
    return [list(center) for center in model.fit(values).cluster_centers_]


def main() -> None:
    """Check or measure."""
    args = common.arguments(__doc__, way="spark", records=10_000_000)
    if args.way == "spark":
        from benchmarks.peers import spark_session

        spark = spark_session.session()

        def train(folder: Path, clusters: int) -> list[list[float]]:
            return train_with_spark(spark, folder, clusters)
    else:
        train = train_with_sklearn
    points_input.contest(args, train)


if __name__ == "__main__":
    main()
