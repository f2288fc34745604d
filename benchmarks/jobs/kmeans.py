"""K-means in millstream: points from Parquet files, all rounds, the model fetched.

Promises: the time is that of a whole job in a session that has run one before.
Does not know: peers, or how the times are compared."""

from __future__ import annotations

from pathlib import Path

from benchmarks import common, points_input
from benchmarks.jobs.epochs import environment

from millstream.ml import KMeans
from millstream.table import StreamTableEnvironment


def train(folder: Path, clusters: int, engine: str) -> list[list[float]]:
    """The centroids after all rounds."""
    tables = StreamTableEnvironment.create(environment(**{"millstream.engine": engine, "spark.driver.memory": "1g"}))
    tables.execute_sql(
        "CREATE TABLE points (features ARRAY<DOUBLE>) WITH ('connector' = 'filesystem', 'format' = 'parquet', "
        f"'path' = '{folder}')"
    )
    learner = KMeans().set_k(clusters).set_max_iter(points_input.ROUNDS).set_seed(1)
    model = learner.fit(tables.from_path("points"))
    with model.get_model_data()[0].execute().collect() as rows:
        return [list(map(float, centroid)) for row in rows for centroid in row[0]]


def main() -> None:
    """Check or measure."""
    args = common.arguments(__doc__, engine="resident", records=10_000_000)
    points_input.contest(args, lambda folder, clusters: train(folder, clusters, args.engine))


if __name__ == "__main__":
    main()
