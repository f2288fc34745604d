"""Every option, once: key, default, what it does, type, and whether it has a meaning here.

Promises: an option is read by its constant; Flink's keys, older keys and defaults hold where Flink has the option; an
option without meaning here is listed as ignored, with the reason, and a misspelt key is found with its nearest known.
Does not know: who reads an option."""

from __future__ import annotations

import difflib
from typing import Any

from millstream.config.configuration import Configuration, MemorySize
from millstream.config.option import OPTIONS as OPTIONS
from millstream.config.option import Option as Option
from millstream.ignored_options import IGNORED, IGNORED_PREFIXES
from millstream.sql_options import SQL_PREFIXES
from millstream.times import Duration

# ------------------------------------------------------------------------------------------------- the program

PARALLELISM = Option("parallelism.default", 1, "How many subtasks an operator has unless it says otherwise.", int)
MAX_PARALLELISM = Option(
    "pipeline.max-parallelism", -1, "How many key groups keyed state has; -1 derives it from the parallelism.", int
)
PIPELINE_NAME: Option[str | None] = Option("pipeline.name", None, "The name of the job.", str)
OPERATOR_CHAINING = Option(
    "pipeline.operator-chaining.enabled",
    True,
    "Whether operators that need no exchange between them run as one.",
    bool,
    ("pipeline.operator-chaining",),
)
CHAIN_MIXED_MAX_PARALLELISM = Option(
    "pipeline.operator-chaining.chain-operators-with-different-max-parallelism",
    True,
    "Whether operators whose max parallelism differs are fused too.",
    bool,
)
AUTO_WATERMARK_INTERVAL = Option(
    "pipeline.auto-watermark-interval",
    Duration.of_millis(200),
    "Zero makes no periodic watermarks; with any other value they are made with every epoch.",
    Duration,
)
OBJECT_REUSE = Option(
    "pipeline.object-reuse",
    False,
    "Ignored: functions in one chain are handed the same objects, always.",
    bool,
    kind="ignored",
)
AUTO_GENERATE_UIDS = Option(
    "pipeline.auto-generate-uids",
    True,
    "Whether an operator without a uid is given one; else it is refused before the job starts.",
    bool,
)
GENERIC_TYPES = Option(
    "pipeline.generic-types",
    True,
    "Whether elements without a declared type may be used as Python objects; else they are refused.",
    bool,
)
GLOBAL_JOB_PARAMETERS: Option[dict[str, str] | None] = Option(
    "pipeline.global-job-parameters", None, "Parameters every function of the job can read.", dict
)
RUNTIME_MODE = Option(
    "execution.runtime-mode",
    "STREAMING",
    "Whether the job runs as a stream or as a batch; automatic is batch when all sources are bounded.",
    str,
    choices=("STREAMING", "BATCH", "AUTOMATIC"),
)
TMP_DIRS: Option[str | None] = Option(
    "io.tmp.dirs", None, "Where local state is kept; the system's directory for temporary files unless set.", str
)

# ------------------------------------------------------------------------------------------------- checkpoints

CHECKPOINT_INTERVAL: Option[Duration | None] = Option(
    "execution.checkpointing.interval", None, "How often a checkpoint is taken; never, unless set.", Duration
)
CHECKPOINT_TIMEOUT = Option(
    "execution.checkpointing.timeout", Duration.of_minutes(10), "A checkpoint that takes longer is aborted.", Duration
)
CHECKPOINT_MIN_PAUSE = Option(
    "execution.checkpointing.min-pause",
    Duration.of_millis(0),
    "The least time between the end of a checkpoint and the start of the next.",
    Duration,
)
CHECKPOINT_MODE = Option(
    "execution.checkpointing.mode",
    "EXACTLY_ONCE",
    "Whether output becomes visible exactly once, with its checkpoint, or at least once.",
    str,
    choices=("EXACTLY_ONCE", "AT_LEAST_ONCE"),
)
CHECKPOINT_STORAGE: Option[str | None] = Option(
    "execution.checkpointing.storage",
    None,
    "Where checkpoints are kept: in the process of the job, or in a directory.",
    str,
    ("state.checkpoint-storage",),
    choices=("jobmanager", "filesystem"),
)
CHECKPOINT_DIR: Option[str | None] = Option(
    "execution.checkpointing.dir",
    None,
    "The directory that checkpoints are written to.",
    str,
    ("state.checkpoints.dir", "state.backend.fs.checkpointdir"),
)
SAVEPOINT_DIR: Option[str | None] = Option(
    "execution.checkpointing.savepoint-dir",
    None,
    "The directory that savepoints are written to unless one is named.",
    str,
    ("state.savepoints.dir", "savepoints.state.backend.fs.dir"),
)
CHECKPOINTS_RETAINED = Option(
    "execution.checkpointing.num-retained",
    3,
    "How many completed checkpoints are kept (Flink keeps 1).",
    int,
    ("state.checkpoints.num-retained",),
)
TOLERABLE_FAILED_CHECKPOINTS = Option(
    "execution.checkpointing.tolerable-failed-checkpoints",
    0,
    "How many checkpoints in a row may fail before the job does.",
    int,
)
CHECKPOINT_RETENTION = Option(
    "execution.checkpointing.externalized-checkpoint-retention",
    "NO_EXTERNALIZED_CHECKPOINTS",
    "Whether checkpoints outlive the cancellation of the job.",
    str,
    choices=("NO_EXTERNALIZED_CHECKPOINTS", "RETAIN_ON_CANCELLATION", "DELETE_ON_CANCELLATION"),
)
CHECKPOINT_INTERVAL_DURING_BACKLOG: Option[Duration | None] = Option(
    "execution.checkpointing.interval-during-backlog",
    None,
    "Ignored: no source says that it works off a backlog.",
    Duration,
    kind="ignored",
)
CHECKPOINT_CREATE_SUBDIR = Option(
    "execution.checkpointing.create-subdir",
    True,
    "Ignored: the checkpoints of a job always have a directory named after it.",
    bool,
    ("state.checkpoints.create-subdir",),
    kind="ignored",
)
INCREMENTAL_CHECKPOINTS = Option(
    "execution.checkpointing.incremental",
    False,
    "Accepted either way: checkpoints are made of what changed, always.",
    bool,
    ("state.backend.incremental",),
)
SNAPSHOT_COMPRESSION = Option(
    "execution.checkpointing.snapshot-compression", False, "Whether state files are compressed (lz4).", bool
)
FILE_ACCESS = Option(
    "millstream.files.access",
    "owner",
    "Who can read the files that a job keeps on local or mounted disks: checkpoints, savepoints, logs, leases, staged "
    "output. `owner` is the user of the process; `group` adds its group; `umask` leaves it to the umask. Data files of "
    "Delta and Iceberg tables, which other users read, always follow the umask. The setting holds for all jobs of a "
    "process.",
    str,
    choices=("owner", "group", "umask"),
)
FILE_MERGING = Option(
    "execution.checkpointing.file-merging.enabled",
    True,
    "Whether the small state files of a checkpoint are merged into one (Flink's default is false).",
    bool,
)
ON_INTERRUPT = Option(
    "millstream.on-interrupt",
    "cancel",
    "What Ctrl-C does to a job that is waited for: cancel it, or stop it with a savepoint.",
    str,
    choices=("cancel", "savepoint"),
)
RECOVERY_PATH: Option[str | None] = Option(
    "execution.state-recovery.path",
    None,
    "The checkpoint or savepoint the job starts from.",
    str,
    ("execution.savepoint.path",),
)
RECOVERY_IGNORE_UNCLAIMED = Option(
    "execution.state-recovery.ignore-unclaimed-state",
    False,
    "Whether state of operators the program no longer has may be dropped.",
    bool,
    ("execution.savepoint.ignore-unclaimed-state",),
)
RECOVERY_ALLOW_OLDER = Option(
    "millstream.recovery.allow-older-checkpoint",
    False,
    "Whether a job whose newest checkpoint is damaged may go on from an older one. Output that was committed after the "
    "older one may then appear twice.",
    bool,
)
RECOVERY_CLAIM_MODE = Option(
    "execution.state-recovery.claim-mode",
    "NO_CLAIM",
    "Whether the job may delete the snapshot it started from.",
    str,
    ("execution.savepoint-restore-mode",),
    choices=("NO_CLAIM", "CLAIM"),
)

# ------------------------------------------------------------------------------------------------------- state

STATE_BACKEND = Option(
    "state.backend.type",
    "hashmap",
    "Where keyed state lives: in memory, or on disk (lmdb, which rocksdb and forst name too).",
    str,
    ("state.backend",),
    choices=("hashmap", "lmdb", "rocksdb", "forst"),
)
STATE_CHANGELOG: Option[bool | None] = Option(
    "state.changelog.enabled",
    None,
    "Accepted either way: state is written as what changed, always.",
    bool,
    ("state.backend.changelog.enabled",),
)
STATE_CACHE_SIZE = Option(
    "millstream.state.cache-size", MemorySize(256 << 20), "How much state on disk is also kept in memory.", MemorySize
)

# ---------------------------------------------------------------------------------------------------- restarts

RESTART_STRATEGY: Option[str | None] = Option(
    "restart-strategy.type",
    None,
    "Whether and when a failed job is restarted; unset: exponential-delay with checkpoints, none without.",
    str,
    ("restart-strategy",),
    choices=(
        *("none", "off", "disable", "fixed-delay", "fixeddelay", "failure-rate", "failurerate"),
        *("exponential-delay", "exponentialdelay"),
    ),
)
FIXED_DELAY_ATTEMPTS = Option("restart-strategy.fixed-delay.attempts", 1, "How often the job is restarted.", int)
FIXED_DELAY_DELAY = Option(
    "restart-strategy.fixed-delay.delay", Duration.of_seconds(1), "The pause before a restart.", Duration
)
FAILURE_RATE_MAX = Option(
    "restart-strategy.failure-rate.max-failures-per-interval",
    1,
    "How many failures within the interval are followed by a restart.",
    int,
)
FAILURE_RATE_INTERVAL = Option(
    "restart-strategy.failure-rate.failure-rate-interval",
    Duration.of_minutes(1),
    "The interval failures are counted over.",
    Duration,
)
FAILURE_RATE_DELAY = Option(
    "restart-strategy.failure-rate.delay", Duration.of_seconds(1), "The pause before a restart.", Duration
)
EXPONENTIAL_INITIAL = Option(
    "restart-strategy.exponential-delay.initial-backoff",
    Duration.of_seconds(1),
    "The pause before the first restart.",
    Duration,
)
EXPONENTIAL_MAX = Option(
    "restart-strategy.exponential-delay.max-backoff",
    Duration.of_minutes(1),
    "The longest pause before a restart.",
    Duration,
)
EXPONENTIAL_MULTIPLIER = Option(
    "restart-strategy.exponential-delay.backoff-multiplier",
    1.5,
    "What the pause is multiplied by after each failure.",
    float,
)
EXPONENTIAL_RESET = Option(
    "restart-strategy.exponential-delay.reset-backoff-threshold",
    Duration.of_hours(1),
    "How long the job must run well before the pause starts over.",
    Duration,
)
EXPONENTIAL_JITTER = Option(
    "restart-strategy.exponential-delay.jitter-factor",
    0.1,
    "Ignored: the pause is not left to chance.",
    float,
    kind="ignored",
)
EXPONENTIAL_ATTEMPTS = Option(
    "restart-strategy.exponential-delay.attempts-before-reset-backoff",
    2147483647,
    "How often the job is restarted before it fails.",
    int,
)

# ------------------------------------------------------------------------------------------------------ Python

PYTHON_FILES: Option[str | None] = Option("python.files", None, "Files put on the Python path of every task.", str)
PYTHON_ARCHIVES: Option[str | None] = Option("python.archives", None, "Archives unpacked for every task.", str)
PYTHON_REQUIREMENTS: Option[str | None] = Option(
    "python.requirements", None, "A requirements file whose packages every task can import.", str
)
CACHED_FILES: Option[str | None] = Option(
    "pipeline.cached-files",
    None,
    "Files every function can read by name: name:n,path:'p',executable:true, with semicolons between them.",
    str,
)
PYTHON_EXECUTABLE: Option[str | None] = Option(
    "python.executable", None, "The Python that runs tasks; that of the program unless set.", str
)

# ------------------------------------------------------------------------------------------------------ epochs

EPOCH_TARGET_DURATION = Option(
    "millstream.epoch.target-duration", Duration.of_seconds(1), "How long an epoch should take.", Duration
)
EPOCH_MAX_RECORDS: Option[int | None] = Option(
    "millstream.epoch.max-records", None, "The most records the sources read in an epoch.", int
)
EPOCH_MAX_BYTES = Option(
    "millstream.epoch.max-bytes", MemorySize(256 << 20), "The most bytes the sources read in an epoch.", MemorySize
)
EPOCH_MIN_INTERVAL = Option(
    "millstream.epoch.min-interval",
    Duration.of_millis(0),
    "The least time between the starts of two epochs.",
    Duration,
)
EPOCH_IDLE_INTERVAL = Option(
    "millstream.epoch.idle-interval",
    Duration.of_millis(100),
    "The pause before sources that had nothing new are asked again.",
    Duration,
)
EPOCH_DEADLINE = Option(
    "millstream.epoch.deadline", Duration.of_minutes(10), "An epoch that takes longer is cancelled and fails.", Duration
)
TASK_CANCELLATION_TIMEOUT = Option(
    "task.cancellation.timeout",
    Duration.of_minutes(3),
    "How long an epoch that was cancelled at its deadline may take to end. After that Spark is given up: its JVM is "
    "killed if the job started it, and the job restarts with a new one. 0 to wait for ever. A commit that is under way "
    "when a job is cancelled is interrupted after the same time, at most after 10 s.",
    Duration,
)
HEARTBEAT_INTERVAL = Option(
    "heartbeat.interval",
    Duration.of_seconds(10),
    "How often a driver that waits for Spark asks it whether it lives.",
    Duration,
)
HEARTBEAT_TIMEOUT = Option(
    "heartbeat.timeout",
    Duration.of_seconds(50),
    "How long Spark's JVM may take to answer that before it counts as lost, and how long a standalone cluster may give "
    "the job no executor after it had some.",
    Duration,
)
BLOCK_MAX_RECORDS = Option("millstream.block.max-records", 65536, "The most records of one block.", int)
BATCH_RUN_SIZE = Option(
    "millstream.batch.run-size",
    MemorySize(64 << 20),
    "How much a subtask of a batch job gathers for an exchange by key before it sorts and sends it.",
    MemorySize,
)
SQL_BATCH_ENGINE = Option(
    "millstream.sql.batch-engine",
    "catalyst",
    "Who plans the queries of a batch job: Spark's optimizer, with our operators for what it does not know, or our "
    "operators alone.",
    str,
    choices=("catalyst", "operators"),
)
PRE_AGGREGATION = Option(
    "millstream.pre-aggregation.enabled",
    False,
    "Whether tumbling and sliding event-time windows with reduce or aggregate, and reduce in a batch job, are folded "
    "before the exchange, too.",
    bool,
)
SCHEDULER = Option(
    "jobmanager.scheduler",
    "Default",
    "Whether the parallelism stays as the program says, or follows the slots of the cluster, up to that.",
    str,
    choices=("Default", "Adaptive"),
)
SCHEDULER_MODE: Option[str | None] = Option(
    "scheduler-mode",
    None,
    "Reactive: the parallelism follows the slots of the cluster, up to the max parallelism.",
    str,
    choices=("REACTIVE",),
)
ADAPTIVE_STABILIZATION = Option(
    "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout",
    Duration.of_minutes(1),
    "How long the slots of the cluster must stay the same before a running job is rescaled to them.",
    Duration,
)
ADAPTIVE_COOLDOWN = Option(
    "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling",
    Duration.of_seconds(30),
    "The least time between two changes of the parallelism by the adaptive scheduler.",
    Duration,
    ("jobmanager.adaptive-scheduler.scaling-interval.min",),
)
SPARK_MASTER = Option("millstream.spark.master", "local[*]", "The Spark master the job runs on.", str)

# ------------------------------------------------------------------------------------------------ availability

HA_TYPE = Option(
    "high-availability.type",
    "NONE",
    "Whether several drivers of one job may stand by, of which the holder of a lease on shared storage runs it.",
    str,
    ("high-availability",),
    choices=("NONE", "lease"),
)
HA_STORAGE_DIR: Option[str | None] = Option(
    "high-availability.storageDir", None, "The directory or URI on shared storage where leases are kept.", str
)
HA_CLUSTER_ID = Option(
    "high-availability.cluster-id",
    "/default",
    "What tells one run of a program from another: drivers with the same id and job name stand by for one another.",
    str,
)
HA_LEASE_DURATION = Option(
    "millstream.high-availability.lease-duration",
    Duration.of_seconds(6),
    "How long a leading driver may be silent before another one takes over.",
    Duration,
)
HA_PROGRESS_TIMEOUT = Option(
    "millstream.high-availability.progress-timeout",
    Duration.of_minutes(30),
    "How long a driver may make no progress before it ends with SUSPENDED: a leader that accepts no new epoch and "
    "completes no checkpoint although there is input gives up its lease, and a driver that stands by gives up when it "
    "cannot read the lease. Keep it above millstream.epoch.deadline, task.cancellation.timeout, "
    "execution.checkpointing.timeout and execution.checkpointing.interval together; unless it is set, it is at least "
    "1.2 times as long as these.",
    Duration,
)

# ----------------------------------------------------------------------------------------------------- ignored

UNALIGNED_CHECKPOINTS = Option(
    "execution.checkpointing.unaligned.enabled",
    False,
    "Ignored: an epoch ends with nothing in flight, so that a checkpoint has nothing to align.",
    bool,
    ("execution.checkpointing.unaligned",),
    kind="ignored",
)
FORCE_UNALIGNED_CHECKPOINTS = Option(
    "execution.checkpointing.unaligned.forced",
    False,
    "Ignored: a checkpoint has nothing to align.",
    bool,
    kind="ignored",
)
ALIGNED_CHECKPOINT_TIMEOUT = Option(
    "execution.checkpointing.aligned-checkpoint-timeout",
    Duration.of_millis(0),
    "Ignored: a checkpoint has nothing to align.",
    Duration,
    ("execution.checkpointing.alignment-timeout",),
    kind="ignored",
)
MAX_CONCURRENT_CHECKPOINTS = Option(
    "execution.checkpointing.max-concurrent-checkpoints",
    1,
    "Ignored: a checkpoint ends before the next begins.",
    int,
    kind="ignored",
)
BUFFER_TIMEOUT = Option(
    "execution.buffer-timeout.interval",
    Duration.of_millis(100),
    "Ignored: an epoch sends what it has when it ends.",
    Duration,
    ("execution.buffer-timeout",),
    kind="ignored",
)
CLOSURE_CLEANER_LEVEL = Option(
    "pipeline.closure-cleaner-level",
    "RECURSIVE",
    "Ignored: Python's closures hold only what they use.",
    str,
    choices=("NONE", "TOP_LEVEL", "RECURSIVE"),
    kind="ignored",
)
JARS: Option[str | None] = Option("pipeline.jars", None, "Ignored: no Java code is loaded.", str, kind="ignored")
CLASSPATHS: Option[str | None] = Option(
    "pipeline.classpaths", None, "Ignored: no Java code is loaded.", str, kind="ignored"
)
FORCE_AVRO = Option("pipeline.force-avro", False, "Ignored: there are no Java serializers.", bool, kind="ignored")
FORCE_KRYO = Option("pipeline.force-kryo", False, "Ignored: there are no Java serializers.", bool, kind="ignored")
LATENCY_TRACKING_INTERVAL = Option(
    "metrics.latency.interval",
    Duration.of_millis(0),
    "Ignored: latency is measured by epoch, not by markers.",
    Duration,
    kind="ignored",
)
TASK_CANCELLATION_INTERVAL = Option(
    "task.cancellation.interval",
    Duration.of_seconds(30),
    "Ignored: Spark cancels tasks.",
    Duration,
    kind="ignored",
)

for _reason, _keys in IGNORED.items():
    for _key in _keys.split():
        Option(_key, None, f"Ignored: {_reason}.", str, kind="ignored")

# read by the parts they belong to
USED_PREFIXES = (
    "spark.",
    "metrics.",
    *SQL_PREFIXES,
    "rest.",
    "security.",
    "millstream.rest.",
)

_ALIASES = {alias: option for option in OPTIONS.values() for alias in option.fallback_keys}
_NAMESPACES = tuple({f"{key.partition('.')[0]}." for key in OPTIONS})


def option_of(key: str) -> Option[Any] | None:
    """The option with this key, or with this as one of its older keys."""
    return OPTIONS.get(key) or _ALIASES.get(key)


def unknown_keys(configuration: Configuration) -> list[tuple[str, str | None]]:
    """Keys that look like options and are none, each with the nearest key that is one.

    A key in a namespace of its own belongs to the user, unless it is nearly that of an option."""
    unknown: list[tuple[str, str | None]] = []
    for key in sorted(configuration.key_set()):
        if option_of(key) or key.startswith((*USED_PREFIXES, *IGNORED_PREFIXES)):
            continue
        ours = key.startswith(_NAMESPACES)
        nearest = difflib.get_close_matches(key, OPTIONS, n=1, cutoff=0.6 if ours else 0.85)
        if ours or nearest:
            unknown.append((key, nearest[0] if nearest else None))
    return unknown


def ignored_keys(configuration: Configuration) -> list[tuple[str, str]]:
    """Keys that are set and have no meaning here, each with the reason, to be warned about once."""
    ignored = []
    for key in sorted(configuration.key_set()):
        option = option_of(key)
        if option is not None and option.kind == "ignored":
            ignored.append((key, option.description))
        elif option is None and key.startswith(IGNORED_PREFIXES):
            ignored.append((key, "Ignored: Spark, or nothing, does this here."))
    return ignored
