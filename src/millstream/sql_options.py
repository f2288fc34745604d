"""Options of SQL and the Table API: `table.*`, and those of the SQL shell, `sql-client.*`.

Promises: keys, defaults and older keys are Flink's.
Does not know: who reads an option. The planner reads them as text, by `Option.key`, because a session can set any text;
it checks the values itself."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.config.option import Option
from millstream.times import Duration

#: Namespaces that are never reported as unknown: connectors and plans have keys that contain names of tables.
SQL_PREFIXES = ("table.", "materialized-table.", "sql-client.", "sql-gateway.")
#: What follows is the name of a table and of one of its options.
PLAN_SECRETS_PREFIX = "table.plan.secrets."

# --------------------------------------------------------------------------------------------------- the session

LOCAL_TIME_ZONE = Option(
    "table.local-time-zone",
    "default",
    "The time zone of the session: a name such as `Europe/Berlin` or an offset such as "
    "`GMT+03:00`. The default is UTC.",
    str,
)
CATALOG_STORE_KIND = Option(
    "table.catalog-store.kind",
    "generic_in_memory",
    "Where the options of catalogs are stored: in memory, or in files, so that the catalogs of a session are there in "
    "the next one. It is read when a table environment is created.",
    str,
    choices=("generic_in_memory", "file"),
)
CATALOG_STORE_PATH = Option(
    "table.catalog-store.file.path", "", "The directory of the catalog store with the kind `file`.", str
)
SQL_DIALECT = Option("table.sql-dialect", "default", "The SQL dialect. Only Flink's own dialect exists.", str)
MAX_GENERATED_CODE_LENGTH = Option(
    "table.generated-code.max-length", 4000, "Ignored: no Java code is generated.", int, kind="ignored"
)
DML_SYNC = Option(
    "table.dml-sync", False, "Whether an INSERT statement in the SQL shell waits until its job has ended.", bool
)
MAX_COLUMN_WIDTH = Option(
    "table.display.max-column-width",
    30,
    "The width at which a column of a result is truncated, for types of variable length.",
    int,
    ("sql-client.display.max-column-width",),
)

# ------------------------------------------------------------------------------------------------- the SQL gateway

GATEWAY_PORT = Option(
    "sql-gateway.endpoint.rest.port",
    8083,
    "The port of the SQL gateway; 0 is any free port.",
    int,
    ("sql-gateway.endpoint.rest.bind-port",),
)
GATEWAY_ADDRESS = Option(
    "sql-gateway.endpoint.rest.address",
    "127.0.0.1",
    "The address that the SQL gateway listens on. One that other machines reach needs `millstream.rest.token-file`.",
    str,
    ("sql-gateway.endpoint.rest.bind-address",),
)
GATEWAY_IDLE_TIMEOUT = Option(
    "sql-gateway.session.idle-timeout",
    Duration.of_minutes(10),
    "The time after which a session that nobody uses is closed; 0 keeps it open.",
    Duration,
)
GATEWAY_CHECK_INTERVAL = Option(
    "sql-gateway.session.check-interval",
    Duration.of_minutes(1),
    "How often the gateway looks for sessions to close.",
    Duration,
)
GATEWAY_MAX_SESSIONS = Option("sql-gateway.session.max-num", 1_000, "How many sessions can be open at once.", int)

# ---------------------------------------------------------------------------------------------- state and mini-batches

STATE_TTL = Option(
    "table.exec.state.ttl",
    Duration.of_millis(0),
    "The minimum time for which state is kept after its last update; 0 keeps it forever.",
    Duration,
)
MINI_BATCH_ENABLED = Option(
    "table.exec.mini-batch.enabled",
    False,
    "Whether a group aggregation emits one update per key and epoch instead of one per input row.",
    bool,
)
MINI_BATCH_LATENCY = Option(
    "table.exec.mini-batch.allow-latency",
    Duration.of_millis(0),
    "The maximum time for which a mini-batch collects rows. It shortens the epochs of the job.",
    Duration,
)
MINI_BATCH_SIZE = Option(
    "table.exec.mini-batch.size", -1, "The maximum number of rows of a mini-batch; -1 sets no limit.", int
)

# ---------------------------------------------------------------------------------------------------- sources and sinks

SOURCE_IDLE_TIMEOUT = Option(
    "table.exec.source.idle-timeout",
    Duration.of_millis(0),
    "The time after which a source without rows is idle, so that watermarks do not wait for it; 0 disables it.",
    Duration,
)
SOURCE_CDC_DUPLICATES = Option(
    "table.exec.source.cdc-events-duplicate",
    False,
    "Whether changelog sources can deliver an event twice. Rows are then deduplicated by the primary key.",
    bool,
)
SINK_UPSERT_MATERIALIZE = Option(
    "table.exec.sink.upsert-materialize",
    "AUTO",
    "Whether a sink with a primary key keeps its rows in state to correct changes that arrive out of order. "
    "`AUTO` does so if the order of changes is not certain.",
    str,
    choices=("AUTO", "NONE", "FORCE"),
)
SINK_NOT_NULL_ENFORCER = Option(
    "table.exec.sink.not-null-enforcer",
    "ERROR",
    "What happens to a row with NULL in a NOT NULL column of a sink: the job fails, or the row is dropped.",
    str,
    choices=("ERROR", "DROP"),
)
SINK_LENGTH_ENFORCER = Option(
    "table.exec.sink.type-length-enforcer",
    "IGNORE",
    "What happens to a value that does not fit the length of its CHAR, VARCHAR, BINARY or VARBINARY column of a sink.",
    str,
    choices=("IGNORE", "TRIM_PAD", "ERROR"),
)
SINK_REQUIRE_ON_CONFLICT = Option(
    "table.exec.sink.require-on-conflict",
    True,
    "Whether an INSERT needs ON CONFLICT if the upsert key of the query is not the primary key of the sink.",
    bool,
)

# ---------------------------------------------------------------------------------------------------- optimisation

AGG_PHASE_STRATEGY = Option(
    "table.optimizer.agg-phase-strategy",
    "AUTO",
    "Whether rows are aggregated locally before they are partitioned. `AUTO` does so where it is possible.",
    str,
    choices=("AUTO", "ONE_PHASE", "TWO_PHASE"),
)
DISTINCT_SPLIT_ENABLED = Option(
    "table.optimizer.distinct-agg.split.enabled",
    False,
    "Whether distinct aggregates are split into two levels, so that one key with many values is computed in parallel.",
    bool,
)
DISTINCT_SPLIT_BUCKETS = Option(
    "table.optimizer.distinct-agg.split.bucket-num",
    1024,
    "The number of buckets of the first level of a split distinct aggregate.",
    int,
)

# ----------------------------------------------------------------------------------------- lookups, asynchronous calls

ASYNC_LOOKUP_TIMEOUT = Option(
    "table.exec.async-lookup.timeout",
    Duration.of_minutes(3),
    "The time after which a lookup fails.",
    Duration,
)
ASYNC_LOOKUP_CAPACITY = Option(
    "table.exec.async-lookup.buffer-capacity",
    100,
    "The maximum number of lookups that a subtask has in flight.",
    int,
)


@dataclass(frozen=True)
class AsyncFunctionOptions:
    """The options of asynchronous functions of one kind."""

    capacity: Option[int]
    timeout: Option[Duration]
    max_attempts: Option[int]
    retry_strategy: Option[str]
    retry_delay: Option[Duration]


def _declare_async(prefix: str, functions: str) -> AsyncFunctionOptions:
    return AsyncFunctionOptions(
        Option(
            f"{prefix}max-concurrent-operations",
            10,
            f"The maximum number of calls of asynchronous {functions} that a subtask has in flight.",
            int,
            (f"{prefix}buffer-capacity",),
        ),
        Option(
            f"{prefix}timeout",
            Duration.of_minutes(3),
            f"The time after which a call of an asynchronous {functions[:-1]} fails, retries included.",
            Duration,
        ),
        Option(
            f"{prefix}max-attempts",
            3,
            f"The maximum number of retries of a failed call of an asynchronous {functions[:-1]}.",
            int,
        ),
        Option(
            f"{prefix}retry-strategy",
            "FIXED_DELAY",
            f"Whether failed calls of asynchronous {functions} are retried.",
            str,
            choices=("FIXED_DELAY", "NO_RETRY"),
        ),
        Option(
            f"{prefix}retry-delay",
            Duration.of_millis(100),
            f"The delay before a failed call of an asynchronous {functions[:-1]} is retried.",
            Duration,
        ),
    )


ASYNC_SCALAR = _declare_async("table.exec.async-scalar.", "scalar functions")
ASYNC_TABLE = _declare_async("table.exec.async-table.", "table functions")

ML_PREDICT_CAPACITY = Option(
    "table.exec.async-ml-predict.max-concurrent-operations",
    10,
    "The maximum number of calls of an asynchronous model that a subtask has in flight.",
    int,
)
ML_PREDICT_TIMEOUT = Option(
    "table.exec.async-ml-predict.timeout",
    Duration.of_minutes(3),
    "The time after which a call of an asynchronous model fails, retries included.",
    Duration,
)

# ------------------------------------------------------------------------------------------------ materialized tables

MATERIALIZED_THRESHOLD = Option(
    "materialized-table.refresh-mode.freshness-threshold",
    Duration.of_minutes(30),
    "A materialized table without REFRESH_MODE is continuous if its freshness is shorter, else refreshed in full.",
    Duration,
)
MATERIALIZED_CONTINUOUS_FRESHNESS = Option(
    "materialized-table.default-freshness.continuous",
    Duration.of_minutes(3),
    "The freshness of a continuous materialized table without FRESHNESS.",
    Duration,
)
MATERIALIZED_FULL_FRESHNESS = Option(
    "materialized-table.default-freshness.full",
    Duration.of_hours(1),
    "The freshness of a materialized table with full refreshes and without FRESHNESS.",
    Duration,
)

# ------------------------------------------------------------------------------------------------------ compiled plans

PLAN_COMPILE_OBJECTS = Option(
    "table.plan.compile.catalog-objects",
    "ALL",
    "What a compiled plan stores about tables: all of their definition, their schema, or their names.",
    str,
    choices=("ALL", "SCHEMA", "IDENTIFIER"),
)
PLAN_RESTORE_OBJECTS = Option(
    "table.plan.restore.catalog-objects",
    "ALL",
    "Where a compiled plan takes tables from: from the catalog if they are there, from "
    "the plan only, or from the catalog only.",
    str,
    choices=("ALL", "ALL_ENFORCED", "IDENTIFIER"),
)
PLAN_FORCE_RECOMPILE = Option(
    "table.plan.force-recompile", False, "Whether COMPILE PLAN overwrites a plan file that exists.", bool
)

# -------------------------------------------------------------------------------------------------------- the SQL shell

RESULT_MODE = Option(
    "sql-client.execution.result-mode",
    "table",
    "How the SQL shell shows the result of a query: as a table that is updated, as a changelog, or line by line.",
    str,
    choices=("table", "changelog", "tableau"),
)
MAX_TABLE_ROWS = Option(
    "sql-client.execution.max-table-result.rows",
    1_000_000,
    "The maximum number of rows that the modes `table` and `changelog` keep. The oldest rows are removed first.",
    int,
)
VERBOSE = Option("sql-client.verbose", False, "Whether the SQL shell shows the traceback of an error.", bool)
COLOR_SCHEMA = Option(
    "sql-client.display.color-schema", "DEFAULT", "Ignored: the SQL shell has one color schema.", str, kind="ignored"
)
PRINT_TIME_COST = Option(
    "sql-client.display.print-time-cost",
    True,
    "Ignored: the SQL shell does not print how long a query took.",
    bool,
    kind="ignored",
)
SHOW_LINE_NUMBERS = Option(
    "sql-client.display.show-line-numbers", False, "Ignored: the SQL shell shows no line numbers.", bool, kind="ignored"
)

# -------------------------------------------------------------------------------------------- options without effect

#: Keys of Flink's other options: they are known, so that they are not reported as misspelt, and have no effect.
WITHOUT_EFFECT = frozenset(
    f"table.{name}"
    for name in [
        "builtin-catalog-name",
        "builtin-database-name",
        "catalog-modification.listeners",
        "column-expansion-strategy",
        "dynamic-table-options.enabled",
        "exec.async-lookup.key-ordered-enabled",
        "exec.async-lookup.output-mode",
        "exec.async-ml-predict.output-mode",
        "exec.async-state.enabled",
        "exec.async-table.max-retries",
        "exec.async-vector-search.max-concurrent-operations",
        "exec.async-vector-search.output-mode",
        "exec.async-vector-search.timeout",
        "exec.deduplicate.insert-update-after-sensitive-enabled",
        "exec.deduplicate.mini-batch.compact-changes-enabled",
        "exec.delta-join.cache-enabled",
        "exec.delta-join.left.cache-size",
        "exec.delta-join.right.cache-size",
        "exec.disabled-operators",
        "exec.interval-join.min-cleanup-interval",
        "exec.legacy-bytes-to-string-cast",
        "exec.legacy-cast-behaviour",
        "exec.local-hash-agg.adaptive.distinct-value-rate-threshold",
        "exec.local-hash-agg.adaptive.enabled",
        "exec.local-hash-agg.adaptive.sampling-threshold",
        "exec.operator-fusion-codegen.enabled",
        "exec.rank.topn-cache-size",
        "exec.resource.default-parallelism",
        "exec.simplify-operator-name-enabled",
        "exec.sink.keyed-shuffle",
        "exec.sink.nested-constraint-enforcer",
        "exec.sink.rowtime-inserter",
        "exec.sink.upsert-materialize-strategy.adaptive.threshold.high",
        "exec.sink.upsert-materialize-strategy.adaptive.threshold.low",
        "exec.sink.upsert-materialize-strategy.type",
        "exec.sort.async-merge-enabled",
        "exec.sort.default-limit",
        "exec.sort.max-num-file-handles",
        "exec.spill-compression.block-size",
        "exec.spill-compression.enabled",
        "exec.uid.format",
        "exec.uid.generation",
        "exec.unbounded-over.version",
        "exec.window-agg.buffer-size-limit",
        "legacy-nested-row-nullability",
        "materialized-table.conversion-from-table.enabled",
        "optimizer.adaptive-broadcast-join.strategy",
        "optimizer.bushy-join-reorder-threshold",
        "optimizer.delta-join.strategy",
        "optimizer.dynamic-filtering.enabled",
        "optimizer.incremental-agg-enabled",
        "optimizer.join-reorder-enabled",
        "optimizer.join.broadcast-threshold",
        "optimizer.multi-join.enabled",
        "optimizer.multiple-input-enabled",
        "optimizer.non-deterministic-update.strategy",
        "optimizer.ptf.max-tables",
        "optimizer.reuse-optimize-block-with-digest-enabled",
        "optimizer.reuse-sink-enabled",
        "optimizer.reuse-source-enabled",
        "optimizer.reuse-sub-plan-enabled",
        "optimizer.runtime-filter.enabled",
        "optimizer.runtime-filter.max-build-data-size",
        "optimizer.runtime-filter.min-filter-ratio",
        "optimizer.runtime-filter.min-probe-data-size",
        "optimizer.skewed-join-optimization.skewed-factor",
        "optimizer.skewed-join-optimization.skewed-threshold",
        "optimizer.skewed-join-optimization.strategy",
        "optimizer.source.report-statistics-enabled",
        "optimizer.sql2rel.project-merge.enabled",
        "optimizer.union-all-as-breakpoint-enabled",
        "resources.download-dir",
        "rtas-ctas.atomicity-enabled",
    ]
)
