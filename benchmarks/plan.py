"""The benchmarks as values: who runs what, how much of it, and what is to be reached.

Promises: frozen; the order here is the order of running and of the table.
Does not know: processes, environments, files."""

from __future__ import annotations

from dataclasses import replace

from benchmarks import batch_input
from benchmarks.contest import Benchmark, Contestant, Goal, Of
from benchmarks.nexmark import measure as nexmark_queries
from benchmarks.plan_iterations import ITERATIONS
from benchmarks.plan_resident import RESIDENT, compare_engines

JVM = {"warm_up": 20.0, "timed": 20.0}  # least seconds: generated code is compiled while it runs
OURS = {"warm_up": 5.0, "timed": 10.0}
_Options = tuple[tuple[str, int | str], ...]


def _sizes(base: int, records: int, **more: int | str) -> _Options:
    return (("base", base), ("records", records), *more.items())


def _flink(name: str, script: str, options: _Options, *goals: Goal) -> Contestant:
    return Contestant(name, f"peers/{script}.py", "flink", options, goals, **JVM)


def _spark(name: str, script: str, options: _Options, *goals: Goal) -> Contestant:
    return Contestant(name, f"peers/{script}.py", "spark", options, goals, **JVM)


def _ours(script: str, options: _Options, *goals: Goal, name: str = "millstream") -> Contestant:
    return Contestant(name, f"jobs/{script}.py", "millstream", options, goals, **OURS)


# Sizes at which PyFlink is fastest here: all states in its cache, and bundles that make a call to Java rare.
_PYTHON = {"cache": 200_000, "bundle": 100_000}

KEYED = Benchmark(
    name="keyed",
    title="KeyedProcessFunction with ValueState: count and sum per key, 100,000 string keys, parallelism 2",
    figure="rate",
    unit="records/s",
    ours=_ours("keyed", _sizes(1_000_000, 8_000_000)),
    peers=(
        _flink("PyFlink, thread mode", "pyflink_keyed", _sizes(50_000, 350_000, mode="thread", **_PYTHON), Goal(30)),
        _flink("PyFlink, process mode", "pyflink_keyed", _sizes(300_000, 600_000, mode="process", **_PYTHON), Goal(30)),
        _spark("Spark transformWithState", "spark_keyed", _sizes(500_000, 1_500_000, batch=500_000), Goal(30)),
        Contestant("bytewax", "peers/bytewax_keyed.py", "bytewax", _sizes(1_000_000, 5_000_000), (Goal(2.5),)),
    ),
    digest="keyed",
    quick=0.1,
    quick_peers=("PyFlink, thread mode", "bytewax"),
)

WINDOW = Benchmark(
    name="window",
    title="Tumbling event-time window (10 min, a record a ms): count and sum, 100,000 integer keys, parallelism 2",
    figure="rate",
    unit="records/s",
    ours=_ours("window", _sizes(4_000_000, 24_000_000)),
    peers=(
        _flink("Flink SQL", "flink_sql_window", _sizes(2_000_000, 14_000_000), Goal(5)),
        _spark("Spark, native", "spark_window", _sizes(2_000_000, 14_000_000, batch=1_000_000), Goal(3)),
    ),
    digest="window",
    quick=0.1,
    quick_peers=("Flink SQL",),
)


def _latency(name: str, title: str, exchange: int, *, goal_ms: float, checkpoints: int, peer: str) -> Benchmark:
    options: _Options = (("exchange", exchange), ("records", 200))
    progress = (("progress", "async"),) if peer == "async" else ()
    return Benchmark(
        name=name,
        title=title,
        figure="p50_ms",
        unit="ms p50",
        ours=_ours("latency", (*options, ("checkpoints", checkpoints)), Goal(at_most=goal_ms, of=Of.FIGURE)),
        peers=(
            _spark(
                "Spark micro-batch" + (", asynchronous progress" if progress else ""),
                "spark_latency",
                (*options, *progress),
                Goal(3),
            ),
        ),
        higher_is_better=False,
        quick=1.0 if name == "latency-exchange" else None,
        quick_peers=("Spark micro-batch",),
    )


LATENCY = _latency(
    "latency",
    "One record an epoch, a Python function; progress need not be durable",
    0,
    goal_ms=40,
    checkpoints=0,
    peer="async",
)
LATENCY_DURABLE = _latency(
    "latency-durable",
    "The same with durable progress: a checkpoint after each epoch, Spark's logs of offsets and commits",
    0,
    goal_ms=60,
    checkpoints=1,
    peer="sync",
)
LATENCY_EXCHANGE = _latency(
    "latency-exchange",
    "One record an epoch, a Python function and a count per key after an exchange; a checkpoint after each epoch",
    1,
    goal_ms=120,
    checkpoints=1,
    peer="sync",
)

SUPERSTEP = Benchmark(
    name="superstep",
    title="A superstep of an iteration with 100 records and one exchange, parallelism 2",
    figure="round_ms",
    unit="ms",
    ours=_ours(
        "superstep",
        (("engine", "resident"), ("records", 500)),
        Goal(at_most=8, of=Of.FIGURE),
        name="millstream, resident slots",
    ),
    peers=(
        _ours("superstep", (("engine", "jobs"), ("records", 200)), name="millstream, Spark jobs"),
        _spark("Spark RDD loop", "spark_superstep", (("records", 200),), Goal(1)),
    ),
    higher_is_better=False,
)


def _growth(keys: int, *goals: Goal) -> Contestant:
    return _ours("growth", (("keys", keys), ("records", 40)), *goals, name=f"{keys:,} keys")


GROWTH = Benchmark(
    name="growth",
    title="Epoch time with 10,000 keys changed, disk backend, against the keys in state",
    figure="p50_ms",
    unit="ms p50",
    ours=_growth(10_000),
    peers=(_growth(1_000_000, Goal(at_most=1.5)), _growth(10_000_000, Goal(at_most=1.5))),
    growth=True,
    quick=0.1,
    quick_peers=("1,000,000 keys",),
)

CHECKPOINT = Benchmark(
    name="checkpoint",
    title="Bytes of a checkpoint with 1 % of 1,000,000 keys changed, as a fraction of a full snapshot",
    figure="fraction",
    unit="of full",
    ours=_ours("checkpoint", (("keys", 1_000_000), ("records", 20)), Goal(at_most=0.02, of=Of.FIGURE)),
    higher_is_better=False,
)

RESCALE = Benchmark(
    name="rescale",
    title="Pause of a rescale with 1,000,000 keys in memory: 2 to 3, 2, 4, 2, 1 and 2 slots, again and again",
    figure="p95_ms",
    unit="ms p95",
    ours=_ours("rescale", (("keys", 1_000_000), ("records", 20)), Goal(at_most=3_000, of=Of.FIGURE)),
    higher_is_better=False,
)

START = Benchmark(
    name="start",
    title="From nothing to the answer of a first SQL query in batch mode, with the archive of Spark's classes",
    figure="seconds",
    unit="s",
    ours=_ours("start", (("archive", "yes"),), name="with the archive"),
    peers=(_ours("start", (("archive", "no"),), name="without"),),
    higher_is_better=False,
    digest="start",
)

ASYNC_IO = Benchmark(
    name="async-io",
    title="Asynchronous look-ups: 10,000 of 5 ms at capacity 200, parallelism 2, as a multiple of the ideal time",
    figure="times_ideal",
    unit="x ideal",
    ours=_ours("async_io", (("records", 10_000),), Goal(at_most=1.5, of=Of.FIGURE)),
    higher_is_better=False,
)

CEP = Benchmark(
    name="cep",
    title="Pattern of three payments of a key in a row within 5 min (a record a ms), 50,000 keys, parallelism 2",
    figure="rate",
    unit="records/s",
    ours=_ours("cep", _sizes(1_000_000, 8_000_000)),
    peers=(_flink("Flink SQL MATCH_RECOGNIZE", "flink_sql_cep", _sizes(1_000_000, 5_000_000), Goal(3)),),
    digest="cep",
)


def _batch(task: str, title: str, streamed: int, *apis: str) -> Benchmark:
    sizes = _sizes(1_000_000, 50_000_000, keys=batch_input.KEYS, task=task)
    fewer = _sizes(1_000_000, streamed, keys=batch_input.KEYS, task=task)  # a rate, and not an hour for it
    as_stream = _ours("batch", (*fewer, ("mode", "streaming")), Goal(2), name="as a stream")
    sparks = [_spark(f"Spark, {name}", "spark_batch", (*sizes, ("api", name)), Goal(1)) for name in apis]
    return Benchmark(
        name=f"batch-{task}",
        title=title,
        figure="rate",
        unit="records/s",
        ours=_ours("batch", (*sizes, ("mode", "batch")), name="as a batch"),
        peers=(as_stream, *sparks),
        digest=task,
    )


BATCH_WORDS = _batch("words", "Word count over 50,000,000 records with 2,000,000 words", 50_000_000, "rdd")
BATCH_SESSIONS = _batch("sessions", "Sessions over 50,000,000 records with 2,000,000 keys", 5_000_000, "frame", "rdd")


def _kafka(name: str, title: str, once: int) -> Benchmark:
    sizes = _sizes(1_000_000, 10_000_000, once=once)
    return Benchmark(
        name=name,
        title=f"Kafka to Kafka, records of 100 bytes, 2 partitions, parallelism 2, {title}",
        figure="rate",
        unit="records/s",
        ours=Contestant("millstream", "kafka_job.py", "millstream", sizes, **OURS),
        peers=(
            Contestant("confluent-kafka loop, 1 process", "kafka_loop.py", "millstream", sizes, (Goal(1.2),), **OURS),
            Contestant("PyFlink, no Python function", "kafka_flink.py", "flink", sizes, (Goal(1),), **JVM),
        ),
        digest="kafka",
        note="the broker runs on the same machine; its CPU time and memory are part of each contestant's",
    )


KAFKA = _kafka("kafka", "at least once", 0)
KAFKA_ONCE = _kafka("kafka-once", "exactly once", 1)
KAFKA_SLOTS = Benchmark(
    name="kafka-slots",
    title="Kafka to Kafka, records of 100 bytes, exactly once, 4 partitions and parallelism 4",
    figure="rate",
    unit="records/s",
    ours=Contestant(
        "millstream", "kafka_job.py", "millstream", _sizes(1_000_000, 10_000_000, once=1, partitions=4), **OURS
    ),
    peers=(
        Contestant(
            "millstream, 2 partitions, parallelism 2",
            "kafka_job.py",
            "millstream",
            _sizes(1_000_000, 10_000_000, once=1, partitions=2),
            (Goal(1.0),),
            **OURS,
        ),
    ),
    digest="kafka",
)

TPCH = Benchmark(
    name="tpch",
    title="TPC-H at scale 1: the 22 queries one after the other over Parquet files, planning included, parallelism 2",
    figure="seconds",
    unit="s",
    ours=_ours("tpch", (("factor", "1"),)),
    peers=(_spark("Spark SQL", "spark_tpch", (("factor", "1"),), Goal(1), Goal(0.8, of=Of.EACH)),),
    higher_is_better=False,
    digest="tpch",
)


def _nexmark(name: str, title: str, mini_batch: int, queries: str, *goals: Goal) -> Benchmark:
    sizes = _sizes(1_000_000, 10_000_000, queries=queries, mini_batch=mini_batch)
    return Benchmark(
        name=name,
        title=f"Nexmark's queries, JSON files in, nothing out, parallelism 2{title}: geometric mean over the queries",
        figure="rate",
        unit="events/s",
        ours=_ours("sql_nexmark", sizes),
        peers=(_flink("Flink SQL", "flink_sql_nexmark", sizes, *goals),),
        digest="nexmark",
        not_compared=nexmark_queries.NOT_COMPARED,
        note=f"mini-batches of {mini_batch:,} rows or 2 s on both sides",
        quick=0.05 if queries == "all" else None,
        quick_peers=("Flink SQL",),
    )


NEXMARK = _nexmark(
    "nexmark",
    "",
    nexmark_queries.MINI_BATCH,
    "all",
    Goal(4),
    Goal(1.5, of=Of.EACH),
    Goal(4, of=Of.CPU),
    Goal(1, of=Of.MEMORY),
)
NEXMARK_WIDE = _nexmark(
    "nexmark-wide", ", larger mini-batches", 1_000_000, "q4,q9,q15,q16,q17,q18", Goal(4), Goal(1.5, of=Of.EACH)
)


def _sql_group(name: str, keys: int, base: int, records: int, mini_batch: int, least: float) -> Benchmark:
    sizes = _sizes(base, records, keys=keys)
    batched = (*sizes, ("mini_batch", mini_batch))
    spark = _spark("Spark, native", "spark_sql_group", (*sizes, ("batch", 1_000_000)), Goal(3))
    return Benchmark(
        name=name,
        title=f"Unbounded GROUP BY: count and sum, {keys:,} integer keys, parallelism 2",
        figure="rate",
        unit="rows/s",
        ours=_ours("sql_group", batched),
        peers=(_flink("Flink SQL", "flink_sql_group", batched, Goal(least)), *([spark] if mini_batch > 50_000 else [])),
        digest="sql-group",
        note=f"mini-batches of {mini_batch:,} rows or 2 s on both sides",
        quick=0.1 if keys == 100_000 else None,
        quick_peers=("Flink SQL",),
    )


SQL_GROUP = (
    _sql_group("sql-group", 100_000, 2_000_000, 12_000_000, 50_000, 4),
    _sql_group("sql-group-wide", 100_000, 2_000_000, 12_000_000, 1_000_000, 4),
    _sql_group("sql-group-large", 5_000_000, 5_000_000, 20_000_000, 50_000, 3),
    _sql_group("sql-group-large-wide", 5_000_000, 5_000_000, 20_000_000, 1_000_000, 3),
)

SQL_JOIN = Benchmark(
    name="sql-join",
    title="A regular join, all rows in state, disk backend, parallelism 2: the cost of the last 2,000,000 rows a side",
    figure="us_per_row",
    unit="us a row",
    ours=_ours("sql_join", _sizes(500_000, 2_500_000), name="of 2,500,000 rows a side"),
    peers=(_ours("sql_join", _sizes(8_000_000, 10_000_000), Goal(at_most=1.5), name="of 10,000,000 rows a side"),),
    growth=True,
    digest="sql-join",
)


def _sql_udf(kind: str, title: str, goal: float, digest: str) -> Benchmark:
    sizes = _sizes(20_000, 400_000, kind=kind)
    best = {"bundle": 100_000, "arrow": 10_000, "cache": 200_000}
    process = _flink("PyFlink, process mode", "pyflink_sql_udf", (*sizes, *best.items()), Goal(goal))
    thread = _flink("PyFlink, thread mode", "pyflink_sql_udf", (*sizes, *best.items(), ("mode", "thread")), Goal(goal))
    return Benchmark(
        name=f"sql-udf-{kind}",
        title=f"{title} in a query, parallelism 2",
        figure="rate",
        unit="rows/s",
        ours=_ours("sql_udf", _sizes(500_000, 5_000_000, kind=kind)),
        peers=(process, thread) if kind == "scalar" else (process,),
        digest=digest,
        note="" if kind == "scalar" else "PyFlink's thread mode runs scalar functions only",
    )


SQL_UDF = (
    _sql_udf("scalar", "A Python function", 15, "functions"),
    _sql_udf("pandas", "A pandas function", 10, "functions"),
    _sql_udf("aggregate", "A Python aggregate function", 100, "aggregate"),
)

ON_RESIDENT_SLOTS = (
    compare_engines(KEYED, 1.3, replace(KEYED.peers[-1], goals=(Goal(3),))),
    compare_engines(WINDOW, 1),
    compare_engines(SQL_GROUP[0], 1),
    compare_engines(NEXMARK, 1),
    compare_engines(RESCALE, 1),
)

BENCHMARKS = (
    KEYED,
    WINDOW,
    LATENCY,
    LATENCY_DURABLE,
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
    NEXMARK_WIDE,
    *SQL_GROUP,
    SQL_JOIN,
    *SQL_UDF,
    *ITERATIONS,
    *RESIDENT,
    *ON_RESIDENT_SLOTS,
)
