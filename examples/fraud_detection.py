"""Card fraud found in a stream of payments: event time, keyed state, timers, windows, exactly-once files.

    python examples/fraud_detection.py                 run it over generated payments
    python examples/fraud_detection.py --demo          run it, break it twice, and compare the results

Four results, each a directory of JSON lines:
    alerts      a tiny payment, then a large one with the same card within a minute: how a stolen card is tried out
    spending    cards that spent a lot within five minutes, looked at every minute
    sessions    bursts of higher payments with one card
    late        payments that came too late for the windows: their terminal was offline
"""

import argparse
import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import fraud_demo
import numpy as np
import pyarrow as pa

from millstream.client.progress import progress
from millstream.common import Configuration, Duration, Encoder, Time, Types, WatermarkStrategy
from millstream.datastream import KeyedProcessFunction, OutputTag, RuntimeContext, StreamExecutionEnvironment
from millstream.datastream.aggregations import Aggregations, Count, Sum
from millstream.datastream.connectors.datagen import Computed, DataGenSource, RandomInt, RandomString, Sequence
from millstream.datastream.connectors.file_system import BucketAssigner, FileSink
from millstream.datastream.functions import ProcessWindowFunction
from millstream.datastream.state import ListStateDescriptor, ValueStateDescriptor
from millstream.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows

NAME = "fraud detection"
RESULTS = ("alerts", "spending", "sessions", "late")

MINUTE = 60_000
SMALL, HIGHER, LARGE = 100, 40_000, 50_000  # cents
START = 1_767_225_600_000  # the first of January 2026
STEP = 10  # milliseconds between two payments
DISORDER = 2_000  # milliseconds a payment may be on its way
EPOCH_RECORDS = 10_000

# Which payments are late must not depend on how the stream is cut into epochs, or two runs could not be compared. A
# watermark moves between epochs, so an epoch and the two before it can hide how late a payment is: OFFLINE is far more.
OFFLINE = 60 * MINUTE
LATE_FROM = 4 * EPOCH_RECORDS
assert OFFLINE > 5 * MINUTE + 3 * EPOCH_RECORDS * STEP + 2 * DISORDER


@dataclass(frozen=True)
class Payment:
    number: int
    card: str
    cents: int
    delay: int
    time: int


@dataclass(frozen=True)
class Alert:
    card: str
    tried: int
    taken: int
    cents: int


LATE = OutputTag("late", Types.DATACLASS(Payment))
COUNTED = Types.TUPLE([Types.STRING(), Types.LONG(), Types.LONG()])


def time_of(columns: dict[str, pa.Array]) -> pa.Array:
    """When the card was used: before the payment reaches us, and long before if the terminal was offline."""
    number, delay = columns["number"].to_numpy(), columns["delay"].to_numpy()
    offline = (number % 5_000 == 4_999) & (number >= LATE_FROM)
    return pa.array(START + number * STEP - delay - np.where(offline, OFFLINE, 0))


class TriedOut(KeyedProcessFunction):
    """Finds a large payment at most a minute after a tiny one.

    Payments arrive out of order, so they wait until the watermark says that nothing older will come; then they are
    looked at in the order in which they happened. `trap` is for the demo: if there is such a file, the function removes
    it and fails."""

    def __init__(self, trap: Path | None = None) -> None:
        self._trap = trap

    def open(self, runtime_context: RuntimeContext) -> None:
        self._waiting = runtime_context.get_list_state(ListStateDescriptor("waiting", Types.DATACLASS(Payment)))
        self._tiny = runtime_context.get_state(ValueStateDescriptor("tiny", Types.LONG()))

    def process_element(self, payment: Payment, ctx: KeyedProcessFunction.Context) -> Iterator[Alert]:
        if self._trap is not None and payment.number % 500 == 0 and self._trap.exists():
            self._trap.unlink(missing_ok=True)
            raise RuntimeError("this function fails once, on purpose")
        if payment.time > ctx.timer_service().current_watermark():
            self._waiting.add(payment)
            ctx.timer_service().register_event_time_timer(payment.time)
        yield from ()

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Alert]:
        waiting = sorted(self._waiting.get(), key=lambda payment: (payment.time, payment.number))
        due = [payment for payment in waiting if payment.time <= timestamp]
        self._waiting.update(waiting[len(due) :])
        tiny = self._tiny.value()
        if tiny is not None and timestamp - tiny > MINUTE:
            self._tiny.clear()
            tiny = None
        for payment in due:
            if payment.cents < SMALL:
                tiny = payment.time
                self._tiny.update(tiny)
                ctx.timer_service().register_event_time_timer(tiny + MINUTE + 1)  # forget it when it is too old
            elif payment.cents >= LARGE and tiny is not None:
                yield Alert(payment.card, tiny, payment.time, payment.cents)


class Session(ProcessWindowFunction):
    """A burst of at least three payments as a line."""

    def process(self, key: str, context: ProcessWindowFunction.Context, elements: list[tuple]) -> Iterator[str]:
        for card, payments, cents in elements:
            if payments >= 3:
                window = context.window()
                yield json.dumps({"card": card, "from": window.start, "to": window.end, "n": payments, "cents": cents})


def build(
    out: Path, checkpoints: Path, records: int, rate: float | None, trap: Path | None = None
) -> StreamExecutionEnvironment:
    """The job, ready to run."""
    for directory in (out, checkpoints):
        directory.mkdir(parents=True, exist_ok=True)
    configuration = Configuration()
    configuration.set_string("execution.checkpointing.dir", str(checkpoints))
    configuration.set_integer("millstream.epoch.max-records", EPOCH_RECORDS)
    configuration.set_string("millstream.epoch.target-duration", "5 s")  # epochs are bounded by records, not by time
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2).enable_checkpointing(2_000)

    source = DataGenSource(
        fields={
            "number": Sequence(),
            "card": RandomString(prefix="card-", cardinality=2_000),
            "cents": RandomInt(50, 60_000),
            "delay": RandomInt(0, DISORDER),
            "time": Computed(time_of, Types.LONG()),
        },
        count=records,
        rate=rate,
        seed=2026,
        record_type=Payment,
    )
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(DISORDER))
    payments = env.from_source(source, strategy.with_timestamp_assigner("time"), "payments")
    by_card = payments.key_by("card")

    alerts = by_card.process(TriedOut(trap), Types.DATACLASS(Alert)).name("tried out").uid("tried-out")

    spent = (
        by_card.window(SlidingEventTimeWindows.of(Time.minutes(5), Time.minutes(1)))
        .side_output_late_data(LATE)
        .aggregate(Aggregations(payments=Count(), cents=Sum("cents")))
        .name("spending")
        .uid("spending")
    )
    spending = spent.filter(lambda row: row["cents"] > 900_000)

    sessions = (
        payments.filter(lambda payment: payment.cents >= HIGHER)
        .map(lambda payment: (payment.card, 1, payment.cents), COUNTED)
        .key_by(0)
        .window(EventTimeSessionWindows.with_gap(Time.seconds(30)))
        .reduce(lambda a, b: (a[0], a[1] + b[1], a[2] + b[2]), Session(), Types.STRING())
        .name("sessions")
        .uid("sessions")
    )
    late = spent.get_side_output(LATE)

    lines = {
        "alerts": alerts.map(lambda alert: json.dumps(vars(alert)), Types.STRING()),
        "spending": spending.map(lambda row: json.dumps(row.as_dict()), Types.STRING()),
        "sessions": sessions,
        "late": late.map(lambda payment: json.dumps(vars(payment)), Types.STRING()),
    }
    for name, stream in lines.items():
        files = FileSink.for_row_format(str(out / name), Encoder.simple_string_encoder())
        sink = files.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner()).build()
        stream.sink_to(sink).name(name).uid(f"sink-{name}")
    return env


def main() -> None:
    parser = argparse.ArgumentParser(description="Card fraud found in a stream of payments.")
    parser.add_argument("--demo", action="store_true", help="break the job twice and compare with a run that was not")
    parser.add_argument("--records", type=int, default=100_000, help="how many payments are generated")
    parser.add_argument("--rate", type=float, help="payments per second; as fast as possible unless given")
    parser.add_argument("--out", type=Path, help="where results go; a new temporary directory unless given")
    parser.add_argument("--checkpoints", type=Path, help="where checkpoints go; below the results unless given")
    args = parser.parse_args()
    out = args.out or Path(tempfile.mkdtemp(prefix="fraud-"))
    checkpoints = args.checkpoints or out / "checkpoints"
    if args.demo:
        fraud_demo.run(fraud_demo.Plan(build, NAME, RESULTS, out, checkpoints, args.records, args.rate or 6_000))
        if args.out is None:
            shutil.rmtree(out)
        return
    env = build(out, checkpoints, args.records, args.rate)
    with progress(NAME) as listener:
        env.register_listener(listener)
        env.execute(NAME)
    print(f"results are in {out}")


if __name__ == "__main__":
    main()
