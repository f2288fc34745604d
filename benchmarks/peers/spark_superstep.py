"""The same rounds as a loop over an RDD, as an algorithm on Spark is written: one job with one shuffle for each round.

Promises: every round is computed, and its input is released after it.
Does not know: other peers, or how the figures are compared."""

from __future__ import annotations

from benchmarks import common
from benchmarks.peers import spark_session

FEW, RECORDS = 20, 100


def main() -> None:
    """Check the result of a few rounds, and measure."""
    args = common.arguments(__doc__, records=200)
    spark = spark_session.session()

    def run(rounds: int) -> list[int]:
        numbers = spark.sparkContext.parallelize(range(RECORDS), common.PARALLELISM).cache()
        for _ in range(rounds):
            by_key = numbers.map(lambda n: (n % 7, n)).partitionBy(common.PARALLELISM)
            counted = by_key.map(lambda pair: pair[1] + 1).cache()
            counted.count()
            numbers.unpersist()
            numbers = counted
        return sorted(numbers.collect())

    if run(FEW) != list(range(FEW, FEW + RECORDS)):
        message = "the loop gave another result"
        raise SystemExit(message)
    common.answer(common.time_of_a_round(run, FEW, args.records))
    spark.stop()


if __name__ == "__main__":
    main()
