"""The benchmarks of resident slots as values: latency of records, recovery, and the others' programs on either engine.

Promises: frozen; the order here is the order of running and of the table.
Does not know: processes, environments, files."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.contest import Benchmark, Contestant, Goal, Of

Options = tuple[tuple[str, int | str], ...]


def compare_engines(benchmark: Benchmark, faster: float, *peers: Contestant) -> Benchmark:
    """The same program on resident slots, against Spark jobs; `faster` is how many times better it has to be."""
    jobs = replace(benchmark.ours, name="millstream, Spark jobs", goals=(Goal(faster),))
    ours = replace(benchmark.ours, name="millstream, resident slots", engine="resident")
    return replace(
        benchmark,
        name=f"{benchmark.name}-resident",
        title=f"{benchmark.title}, on resident slots",
        ours=ours,
        peers=(jobs, *peers),
        quick=None,
    )


def _resident(script: str, options: Options, *goals: Goal) -> Contestant:
    """A program of ours on resident slots."""
    return Contestant("millstream, resident slots", script, "millstream", (*options, ("engine", "resident")), goals)


def _jobs(script: str, options: Options, *goals: Goal) -> Contestant:
    """The same program with a Spark job for each epoch."""
    return Contestant("millstream, Spark jobs", script, "millstream", (*options, ("engine", "jobs")), goals)


def _at_most(value: float) -> Goal:
    return Goal(at_most=value, of=Of.FIGURE)


def _peers(script: str, options: Options, *goals: Goal) -> tuple[Contestant, ...]:
    """PyFlink in both modes, at its defaults and at its best."""
    return tuple(
        Contestant(
            f"PyFlink, {mode} mode, {'at its best' if tuned else 'defaults'}",
            script,
            "flink",
            (*options, ("mode", mode), ("tuned", tuned)),
            goals,
        )
        for mode in ("thread", "process")
        for tuned in (0, 1)
    )


def _record_latency(exchange: int, goal_ms: float) -> Benchmark:
    options: Options = (("exchange", exchange), ("rate", 50), ("seconds", 30))
    spark: Options = (("exchange", exchange), ("rate", 1), ("seconds", 60))
    return Benchmark(
        name=f"record-latency-{exchange}",
        title=f"A record from a socket to the sink function, {exchange or 'no'} exchanges, checkpoints every 10 s",
        figure="p50_ms",
        unit="ms p50",
        ours=_resident("jobs/record_latency.py", options, _at_most(goal_ms)),
        peers=(
            _jobs("jobs/record_latency.py", options),
            *_peers("peers/pyflink_record_latency.py", options, Goal(1)),
            *(
                (Contestant("Spark micro-batch", "peers/spark_record_latency.py", "spark", spark, (Goal(30),)),)
                if exchange < 2
                else ()
            ),
            Contestant("bytewax", "peers/bytewax_record_latency.py", "bytewax", options),
        ),
        higher_is_better=False,
    )


RECORD_LATENCY = tuple(_record_latency(exchange, goal) for exchange, goal in ((0, 3), (1, 5), (3, 8)))

_LOAD: Options = (("exchange", 1), ("rate", 50_000), ("seconds", 30))
RECORD_LOAD = Benchmark(
    name="record-load",
    title="The same with one exchange and a count per key in Python, 50,000 records/s, parallelism 2",
    figure="p50_ms",
    unit="ms p50",
    ours=_resident("jobs/record_latency.py", _LOAD, _at_most(20)),
    peers=(
        _jobs("jobs/record_latency.py", _LOAD),
        *_peers("peers/pyflink_record_latency.py", _LOAD),
        Contestant("bytewax", "peers/bytewax_record_latency.py", "bytewax", _LOAD),
    ),
    higher_is_better=False,
)


def _kafka_latency(rate: int, once: int, figure: str, goal_ms: float) -> Benchmark:
    options: Options = (("rate", rate), ("seconds", 30), ("once", once))
    guarantee = "exactly once, a checkpoint each second" if once else "at least once"
    return Benchmark(
        name=f"kafka-latency-{rate}" + ("-once" if once else ""),
        title=f"Kafka to a count per key in Python to Kafka, {rate:,} records/s, {guarantee}, parallelism 2",
        figure=figure,
        unit=figure.replace("_", " "),
        ours=_resident("kafka_latency.py", options, _at_most(goal_ms)),
        peers=(_jobs("kafka_latency.py", options), *_peers("kafka_latency_flink.py", options)),
        higher_is_better=False,
    )


KAFKA_LATENCY = (
    _kafka_latency(20, 0, "p50_ms", 15),
    _kafka_latency(200, 0, "p50_ms", 15),
    _kafka_latency(20_000, 0, "p99_ms", 60),
    _kafka_latency(20_000, 1, "p99_ms", 1_300),
)


def _recovery(case: str, processes: str, goal_seconds: float) -> Benchmark:
    options: Options = (("case", case), ("size", "normal"))
    return Benchmark(
        name=f"recovery-{case}",
        title=f"From a kill of {processes} to the second epoch after it, the slowest 95th percentile of them",
        figure="p95_s",
        unit="s p95",
        ours=_resident("jobs/recovery.py", options, _at_most(goal_seconds)),
        peers=(_jobs("jobs/recovery.py", options, Goal(1)),),
        higher_is_better=False,
    )


RECOVERY = (
    _recovery("kills", "a worker or a driver", 15),
    _recovery("executors", "an executor or a machine", 8),
)

EXCHANGE = Benchmark(
    name="exchange",
    title="Rows of three integer columns, partitioned by the hash of one, parallelism 2",
    figure="rate",
    unit="rows/s",
    ours=_resident("jobs/exchange.py", (("records", 1_000_000),)),
    peers=(_jobs("jobs/exchange.py", (("records", 1_000_000),), Goal(4)),),
)

IDLE = Benchmark(
    name="idle",
    title="The processors' time of a job without input, the JVM and all workers included",
    figure="percent",
    unit="% of a core",
    ours=_resident("jobs/idle.py", (("seconds", 60),), _at_most(1)),
    peers=(_jobs("jobs/idle.py", (("seconds", 60),)),),
    higher_is_better=False,
)

SLOTS = Benchmark(
    name="slots",
    title="An epoch of 64 slots with an all-to-all exchange, one record for each slot, on one machine",
    figure="p50_ms",
    unit="ms p50",
    ours=_resident("jobs/slots.py", (("slots", 64),)),
    peers=(replace(_resident("jobs/slots.py", (("slots", 16),)), name="16 slots"),),
    higher_is_better=False,
)

RESIDENT = (*RECORD_LATENCY, RECORD_LOAD, *KAFKA_LATENCY, *RECOVERY, EXCHANGE, IDLE, SLOTS)
