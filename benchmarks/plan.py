"""The benchmarks as values: who runs what, how much of it, and what is to be reached.

Promises: frozen; the order here is the order of running and of the tables.
Does not know: processes, environments, files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from benchmarks import batch_input, common, kafka_peers, sql_functions, sql_input, tpch_input
from benchmarks.nexmark import measure as nexmark_queries

Options = tuple[tuple[str, int | str], ...]


@dataclass(frozen=True, slots=True)
class Goal:
    """A bound on a figure."""

    at_least: float | None = None
    at_most: float | None = None

    def met(self, value: float) -> bool:
        """Whether the value is within the bound."""
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)

    def __str__(self) -> str:
        return f">= {self.at_least:g}" if self.at_least is not None else f"<= {self.at_most:g}"


@dataclass(frozen=True, slots=True)
class Contestant:
    """A script with its options. --scale shrinks `base`, `records` and `keys`; `goal` bounds the ratio; `engine` runs
    millstream's jobs."""

    name: str
    script: str
    environment: str
    options: tuple[tuple[str, int | str], ...]
    goal: Goal | None = None
    engine: str = "jobs"

    def arguments(self, scale: float) -> list[str]:
        """The command line after the script's name."""
        words = []
        for name, value in self.options:
            scaled = isinstance(value, int) and name in {"base", "records", "keys"}
            words += [f"--{name}", str(max(10, round(value * scale)) if scaled and isinstance(value, int) else value)]
        return words


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One contest. The ratio says how many times better ours is; with `growth`, how many times the other is of ours."""

    name: str
    title: str
    figure: str
    unit: str
    ours: Contestant
    peers: tuple[Contestant, ...] = ()
    higher_is_better: bool = True
    growth: bool = False
    goal: Goal | None = None
    expected: Callable[[], dict[str, int]] | None = None

    def ratio(self, ours: float, other: float) -> float:
        """How the two figures compare."""
        return ours / other if self.higher_is_better and not self.growth else other / ours


def _sizes(base: int, records: int, **more: int | str) -> tuple[tuple[str, int | str], ...]:
    return (("base", base), ("records", records), *more.items())


KEYED = Benchmark(
    name="keyed",
    title="KeyedProcessFunction with ValueState: count and sum per key, 100,000 string keys, parallelism 2",
    figure="rate",
    unit="records/s",
    ours=Contestant("millstream", "jobs/keyed.py", "millstream", _sizes(1_000_000, 8_000_000)),
    peers=(
        Contestant(
            "PyFlink, thread mode", "peers/pyflink_keyed.py", "flink", _sizes(50_000, 350_000, mode="thread"), Goal(20)
        ),
        Contestant(
            "PyFlink, process mode", "peers/pyflink_keyed.py", "flink", _sizes(2_000, 26_000, mode="process"), Goal(100)
        ),
        Contestant(
            "Spark transformWithState",
            "peers/spark_keyed.py",
            "spark",
            _sizes(200_000, 800_000, batch=200_000),
            Goal(10),
        ),
        Contestant("bytewax", "peers/bytewax_keyed.py", "bytewax", _sizes(1_000_000, 5_000_000), Goal(2)),
    ),
    expected=common.expected_keyed,
)

WINDOW = Benchmark(
    name="window",
    title="Tumbling event-time window (10 min, a record a ms): count and sum, 100,000 integer keys, parallelism 2",
    figure="rate",
    unit="records/s",
    ours=Contestant("millstream", "jobs/window.py", "millstream", _sizes(4_000_000, 24_000_000)),
    peers=(
        Contestant("Flink SQL", "peers/flink_sql_window.py", "flink", _sizes(2_000_000, 14_000_000), Goal(2)),
        Contestant(
            "Spark, native", "peers/spark_window.py", "spark", _sizes(2_000_000, 14_000_000, batch=1_000_000), Goal(2)
        ),
    ),
    expected=common.expected_window,
)


def _latency(name: str, title: str, exchange: int, goal_ms: float) -> Benchmark:
    options: tuple[tuple[str, int | str], ...] = (("exchange", exchange), ("records", 200))
    return Benchmark(
        name=name,
        title=title,
        figure="p50_ms",
        unit="ms p50",
        ours=Contestant("millstream", "jobs/latency.py", "millstream", options),
        peers=(Contestant("Spark micro-batch", "peers/spark_latency.py", "spark", options, Goal(3)),),
        higher_is_better=False,
        goal=Goal(at_most=goal_ms),
    )


LATENCY = _latency("latency", "Epoch latency, one record, no exchange", 0, 40)
LATENCY_EXCHANGE = _latency("latency-exchange", "Epoch latency, one record, one exchange", 1, 90)

SUPERSTEP = Benchmark(
    name="superstep",
    title="A superstep of an iteration with 100 records and one exchange, parallelism 2",
    figure="round_ms",
    unit="ms",
    ours=Contestant(
        "millstream, resident slots", "jobs/superstep.py", "millstream", (("engine", "resident"), ("records", 500))
    ),
    peers=(
        Contestant("millstream, Spark jobs", "jobs/superstep.py", "millstream", (("engine", "jobs"), ("records", 200))),
        Contestant("Spark RDD loop", "peers/spark_superstep.py", "spark", (("records", 200),), Goal(1)),
    ),
    higher_is_better=False,
    goal=Goal(at_most=8),
)


def _engines(benchmark: Benchmark, *, faster: float, peers: tuple[Contestant, ...] = (), **more: Goal) -> Benchmark:
    """The same program on resident slots, against Spark jobs; `faster` is how many times better it has to be."""
    script, options = benchmark.ours.script, benchmark.ours.options
    jobs = Contestant("millstream, Spark jobs", script, "millstream", options, Goal(faster))
    return replace(
        benchmark,
        name=f"{benchmark.name}-resident",
        title=f"{benchmark.title}, on resident slots",
        ours=replace(jobs, name="millstream, resident slots", goal=None, engine="resident"),
        peers=(jobs, *peers),
        goal=more.get("goal"),
    )


_RESIDENT, _JOBS = ("engine", "resident"), ("engine", "jobs")


def _peers(script: str, options: Options, goal: Goal | None = None) -> tuple[Contestant, ...]:
    """PyFlink in both modes, at its defaults and at its best."""
    return tuple(
        Contestant(
            f"PyFlink, {mode} mode, {'at its best' if tuned else 'defaults'}",
            script,
            "flink",
            (*options, ("mode", mode), ("tuned", tuned)),
            goal,
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
        ours=Contestant("millstream, resident slots", "jobs/record_latency.py", "millstream", (*options, _RESIDENT)),
        peers=(
            Contestant("millstream, Spark jobs", "jobs/record_latency.py", "millstream", (*options, _JOBS)),
            *_peers("peers/pyflink_record_latency.py", options, Goal(1)),
            *(
                (Contestant("Spark micro-batch", "peers/spark_record_latency.py", "spark", spark, Goal(30)),)
                if exchange < 2
                else ()
            ),
            Contestant("bytewax", "peers/bytewax_record_latency.py", "bytewax", options),
        ),
        higher_is_better=False,
        goal=Goal(at_most=goal_ms),
    )


RECORD_LATENCY = tuple(_record_latency(exchange, goal) for exchange, goal in ((0, 3), (1, 5), (3, 8)))

_LOAD: Options = (("exchange", 1), ("rate", 50_000), ("seconds", 30))
RECORD_LOAD = Benchmark(
    name="record-load",
    title="The same with one exchange and a count per key in Python, 50,000 records/s, parallelism 2",
    figure="p50_ms",
    unit="ms p50",
    ours=Contestant("millstream, resident slots", "jobs/record_latency.py", "millstream", (*_LOAD, _RESIDENT)),
    peers=(
        Contestant("millstream, Spark jobs", "jobs/record_latency.py", "millstream", (*_LOAD, _JOBS)),
        *_peers("peers/pyflink_record_latency.py", _LOAD),
        Contestant("bytewax", "peers/bytewax_record_latency.py", "bytewax", _LOAD),
    ),
    higher_is_better=False,
    goal=Goal(at_most=20),
)


def _kafka_latency(rate: int, once: int, figure: str, goal_ms: float) -> Benchmark:
    options: Options = (("rate", rate), ("seconds", 30), ("once", once))
    guarantee = "exactly once, a checkpoint each second" if once else "at least once"
    return Benchmark(
        name=f"kafka-latency-{rate}" + ("-once" if once else ""),
        title=f"Kafka to a count per key in Python to Kafka, {rate:,} records/s, {guarantee}, parallelism 2",
        figure=figure,
        unit=figure.replace("_", " "),
        ours=Contestant("millstream, resident slots", "kafka_latency.py", "millstream", (*options, _RESIDENT)),
        peers=(
            Contestant("millstream, Spark jobs", "kafka_latency.py", "millstream", (*options, _JOBS)),
            *_peers("kafka_latency_flink.py", options),
        ),
        higher_is_better=False,
        goal=Goal(at_most=goal_ms),
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
        ours=Contestant("millstream, resident slots", "jobs/recovery.py", "millstream", (*options, _RESIDENT)),
        peers=(Contestant("millstream, Spark jobs", "jobs/recovery.py", "millstream", (*options, _JOBS), Goal(1)),),
        higher_is_better=False,
        goal=Goal(at_most=goal_seconds),
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
    ours=Contestant(
        "millstream, resident slots", "jobs/exchange.py", "millstream", (("records", 1_000_000), _RESIDENT)
    ),
    peers=(
        Contestant(
            "millstream, Spark jobs", "jobs/exchange.py", "millstream", (("records", 1_000_000), _JOBS), Goal(4)
        ),
    ),
)

IDLE = Benchmark(
    name="idle",
    title="The processors' time of a job without input, the JVM and all workers included",
    figure="percent",
    unit="% of a core",
    ours=Contestant("millstream, resident slots", "jobs/idle.py", "millstream", (("seconds", 60), _RESIDENT)),
    peers=(Contestant("millstream, Spark jobs", "jobs/idle.py", "millstream", (("seconds", 60), _JOBS)),),
    higher_is_better=False,
    goal=Goal(at_most=1),
)

SLOTS = Benchmark(
    name="slots",
    title="An epoch of 64 slots with an all-to-all exchange, one record for each slot, on one machine",
    figure="p50_ms",
    unit="ms p50",
    ours=Contestant("millstream, resident slots", "jobs/slots.py", "millstream", (("slots", 64), _RESIDENT)),
    peers=(Contestant("16 slots", "jobs/slots.py", "millstream", (("slots", 16), _RESIDENT)),),
    higher_is_better=False,
)

GROWTH = Benchmark(
    name="growth",
    title="Epoch time with 10,000 keys changed, disk backend, against the keys in state",
    figure="p50_ms",
    unit="ms p50",
    ours=Contestant("10,000 keys", "jobs/growth.py", "millstream", (("keys", 10_000), ("records", 40))),
    peers=(
        Contestant(
            "10,000,000 keys",
            "jobs/growth.py",
            "millstream",
            (("keys", 10_000_000), ("records", 40)),
            Goal(at_most=1.5),
        ),
    ),
    growth=True,
)

CHECKPOINT = Benchmark(
    name="checkpoint",
    title="Bytes of a checkpoint with 1 % of 1,000,000 keys changed, as a fraction of a full snapshot",
    figure="fraction",
    unit="of full",
    ours=Contestant("millstream", "jobs/checkpoint.py", "millstream", (("keys", 1_000_000), ("records", 20))),
    higher_is_better=False,
    goal=Goal(at_most=0.03),
)

RESCALE = Benchmark(
    name="rescale",
    title="Pause of a rescale with 1,000,000 keys in memory: 2 to 3, 2, 4, 2, 1 and 2 slots, again and again",
    figure="p95_ms",
    unit="ms p95",
    ours=Contestant("millstream", "jobs/rescale.py", "millstream", (("keys", 1_000_000), ("records", 20))),
    higher_is_better=False,
    goal=Goal(at_most=3_000),
)

START = Benchmark(
    name="start",
    title="From nothing to the answer of a first SQL query in batch mode, with the archive of Spark's classes",
    figure="seconds",
    unit="s",
    ours=Contestant("with the archive", "jobs/start.py", "millstream", (("archive", "yes"),)),
    peers=(Contestant("without", "jobs/start.py", "millstream", (("archive", "no"),)),),
    higher_is_better=False,
)

ASYNC_IO = Benchmark(
    name="async-io",
    title="Asynchronous look-ups: 10,000 of 5 ms at capacity 200, parallelism 2, as a multiple of the ideal time",
    figure="times_ideal",
    unit="x ideal",
    ours=Contestant("millstream", "jobs/async_io.py", "millstream", (("records", 10_000),)),
    higher_is_better=False,
    goal=Goal(at_most=1.5),
)

CEP = Benchmark(
    name="cep",
    title="Pattern of three payments of a key in a row within 5 min (a record a ms), 50,000 keys, parallelism 2",
    figure="rate",
    unit="records/s",
    ours=Contestant("millstream", "jobs/cep.py", "millstream", _sizes(1_000_000, 5_000_000)),
    peers=(
        Contestant(
            "Flink SQL MATCH_RECOGNIZE", "peers/flink_sql_cep.py", "flink", _sizes(1_000_000, 5_000_000), Goal(1)
        ),
    ),
    expected=common.expected_cep,
)


def _batch(task: str, title: str, streamed: int, expected: Callable[[], dict[str, int]], *apis: str) -> Benchmark:
    sizes = _sizes(1_000_000, 50_000_000, keys=batch_input.KEYS, task=task)
    fewer = _sizes(1_000_000, streamed, keys=batch_input.KEYS, task=task)  # a rate, and not an hour for it
    as_stream = Contestant("as a stream", "jobs/batch.py", "millstream", (*fewer, ("mode", "streaming")), Goal(2))
    sparks = [
        Contestant(f"Spark, {name}", "peers/spark_batch.py", "spark", (*sizes, ("api", name)), Goal(1 / 1.2))
        for name in apis
    ]
    return Benchmark(
        name=f"batch-{task}",
        title=title,
        figure="rate",
        unit="records/s",
        ours=Contestant("as a batch", "jobs/batch.py", "millstream", (*sizes, ("mode", "batch"))),
        peers=(as_stream, *sparks),
        expected=expected,
    )


BATCH_WORDS = _batch(
    "words",
    "Word count over 50,000,000 records with 2,000,000 words, 2 GiB",
    50_000_000,
    batch_input.expected_words,
    "rdd",
)
BATCH_SESSIONS = _batch(
    "sessions",
    "Sessions over 50,000,000 records with 2,000,000 keys, 2 GiB",
    5_000_000,
    batch_input.expected_sessions,
    "frame",
    "rdd",
)


def _kafka(name: str, title: str, once: int, goal: float) -> Benchmark:
    sizes = _sizes(500_000, 5_000_000, once=once)
    return Benchmark(
        name=name,
        title=f"Kafka to Kafka, records of 100 bytes, 2 partitions, parallelism 2, {title}",
        figure="rate",
        unit="records/s",
        ours=Contestant("millstream", "kafka_job.py", "millstream", sizes),
        peers=(
            Contestant("confluent-kafka loop, 1 process", "kafka_loop.py", "millstream", sizes, Goal(goal)),
            Contestant("PyFlink, no Python function", "kafka_flink.py", "flink", sizes),
        ),
        expected=kafka_peers.expected,
    )


KAFKA = _kafka("kafka", "at least once", 0, 1.2)
KAFKA_ONCE = _kafka("kafka-once", "exactly once", 1, 1.2)
KAFKA_SLOTS = Benchmark(
    name="kafka-slots",
    title="Kafka to Kafka, records of 100 bytes, exactly once, 4 partitions and parallelism 4",
    figure="rate",
    unit="records/s",
    ours=Contestant("millstream", "kafka_job.py", "millstream", _sizes(500_000, 5_000_000, once=1, partitions=4)),
    peers=(
        Contestant(
            "millstream, 2 partitions, parallelism 2",
            "kafka_job.py",
            "millstream",
            _sizes(500_000, 5_000_000, once=1, partitions=2),
            Goal(1.0),
        ),
    ),
    expected=kafka_peers.expected,
)

TPCH = Benchmark(
    name="tpch",
    title="TPC-H at scale 1: the 22 queries one after the other over Parquet files, planning included, parallelism 2",
    figure="seconds",
    unit="s",
    ours=Contestant("millstream", "jobs/tpch.py", "millstream", (("factor", "1"),)),
    peers=(Contestant("Spark SQL", "peers/spark_tpch.py", "spark", (("factor", "1"),), Goal(1 / 1.1)),),
    higher_is_better=False,
    expected=tpch_input.expected,
)

_NEXMARK_SIZES = _sizes(100_000, 1_000_000, queries="all")
NEXMARK = Benchmark(
    name="nexmark",
    title="Nexmark's queries, JSON files in, nothing out, mini-batches, parallelism 2: geometric mean over the queries",
    figure="rate",
    unit="events/s",
    ours=Contestant("millstream", "jobs/sql_nexmark.py", "millstream", _NEXMARK_SIZES),
    peers=(Contestant("Flink SQL", "peers/flink_sql_nexmark.py", "flink", _NEXMARK_SIZES, Goal(2)),),
    expected=nexmark_queries.expected,
)


def _sql_group(name: str, keys: int, base: int, records: int) -> Benchmark:
    sizes = _sizes(base, records, keys=keys)
    return Benchmark(
        name=name,
        title=f"Unbounded GROUP BY: count and sum, {keys:,} integer keys, mini-batches, parallelism 2",
        figure="rate",
        unit="rows/s",
        ours=Contestant("millstream", "jobs/sql_group.py", "millstream", sizes),
        peers=(
            Contestant("Flink SQL", "peers/flink_sql_group.py", "flink", sizes, Goal(3)),
            Contestant("Spark, native", "peers/spark_sql_group.py", "spark", (*sizes, ("batch", 1_000_000)), Goal(2)),
        ),
        expected=sql_input.expected,
    )


SQL_GROUP = _sql_group("sql-group", 100_000, 2_000_000, 12_000_000)
SQL_GROUP_LARGE = _sql_group("sql-group-large", 5_000_000, 5_000_000, 20_000_000)

SQL_JOIN = Benchmark(
    name="sql-join",
    title="A regular join with all rows in state, disk backend, parallelism 2: the cost of a row",
    figure="us_per_row",
    unit="us a row",
    ours=Contestant("100,000 rows a side", "jobs/sql_join.py", "millstream", _sizes(10_000, 100_000)),
    peers=(
        Contestant(
            "10,000,000 rows a side", "jobs/sql_join.py", "millstream", _sizes(100_000, 10_000_000), Goal(at_most=2)
        ),
    ),
    growth=True,
)


def _sql_udf(kind: str, title: str, goal: float) -> Benchmark:
    return Benchmark(
        name=f"sql-udf-{kind}",
        title=f"{title} in a query, parallelism 2",
        figure="rate",
        unit="rows/s",
        ours=Contestant("millstream", "jobs/sql_udf.py", "millstream", _sizes(500_000, 5_000_000, kind=kind)),
        peers=(
            Contestant("PyFlink", "peers/pyflink_sql_udf.py", "flink", _sizes(20_000, 400_000, kind=kind), Goal(goal)),
        ),
        expected=sql_functions.expected(kind),
    )


SQL_UDF = tuple(
    _sql_udf(kind, title, goal)
    for kind, title, goal in (
        ("scalar", "A Python function", 10),
        ("pandas", "A pandas function", 3),
        ("aggregate", "A Python aggregate function", 10),
    )
)

ON_RESIDENT_SLOTS = (
    _engines(KEYED, faster=1.3, peers=(replace(KEYED.peers[-1], goal=Goal(3)),)),
    _engines(WINDOW, faster=1),
    _engines(SQL_GROUP, faster=1),
    _engines(NEXMARK, faster=1),
    _engines(RESCALE, faster=1, goal=Goal(at_most=3_000)),
)

BENCHMARKS = (
    KEYED,
    WINDOW,
    LATENCY,
    LATENCY_EXCHANGE,
    SUPERSTEP,
    GROWTH,
    CHECKPOINT,
    RESCALE,
    START,
    ASYNC_IO,
    CEP,
    BATCH_WORDS,
    BATCH_SESSIONS,
    KAFKA,
    KAFKA_ONCE,
    KAFKA_SLOTS,
    TPCH,
    NEXMARK,
    SQL_GROUP,
    SQL_GROUP_LARGE,
    SQL_JOIN,
    *SQL_UDF,
    *RECORD_LATENCY,
    RECORD_LOAD,
    *KAFKA_LATENCY,
    *RECOVERY,
    EXCHANGE,
    IDLE,
    SLOTS,
    *ON_RESIDENT_SLOTS,
)
