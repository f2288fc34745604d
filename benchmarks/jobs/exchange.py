"""Exchange throughput in millstream: rows of three integer columns, partitioned by the hash of one, on either engine.

Promises: rows are generated in the source's task and counted after the exchange, so only the exchange is large; epochs
have the same number of rows, and the first ones are not counted.
Does not know: peers, or how the rates are compared."""

from __future__ import annotations

from benchmarks import common
from benchmarks.jobs import epochs
from benchmarks.jobs.stepped_source import SteppedSource

from millstream.common import Row, Types
from millstream.datastream import DataStream

WARM_UP, EPOCHS = 3, 10
THREE = Types.ROW_NAMED(["a", "b", "c"], [Types.LONG(), Types.LONG(), Types.LONG()])


def exchanged(numbers: DataStream) -> DataStream:
    """Three columns of each number, sent to the slot of the first."""
    rows = numbers.map(lambda n: Row(n, n + 1, n + 2), output_type=THREE)
    return rows.key_by(lambda row: row[0], key_type=Types.LONG()).filter(lambda row: row[0] < 0)


def main() -> None:
    """Measure: records per second of whole epochs, those without an exchange taken off."""
    args = common.arguments(__doc__, records=200_000, engine="jobs", exchange=1)
    env = epochs.environment(**{"millstream.engine": args.engine, "millstream.epoch.max-records": str(args.records)})
    source = SteppedSource(keys=common.CHECK_KEYS, step=args.records, steps=WARM_UP + EPOCHS)
    numbers = epochs.numbers(env, source)
    rows = exchanged(numbers) if args.exchange else numbers.filter(lambda n: n < 0)
    done = epochs.reports(env, rows, "exchange", epochs.EPOCHS)
    samples = epochs.durations(done, args.records, EPOCHS)
    rate = 1000 * args.records / common.percentile(samples, 0.5)
    common.answer({"rate": rate, "epochs_ms": [round(sample, 1) for sample in samples]})


if __name__ == "__main__":
    main()
