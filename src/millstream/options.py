"""The declarations of all options: key, default, description, type, and whether the option has an effect.

Promises: an option is read by its constant; keys, deprecated keys and defaults are Flink's where Flink has the option;
an option that has no effect is declared as ignored, with the reason.
Does not know: who reads an option; misspelt keys, see `option_keys`."""

from __future__ import annotations

from millstream.config.memory_size import MemorySize
from millstream.config.option import OPTIONS as OPTIONS
from millstream.config.option import Option as Option
from millstream.ignored_options import IGNORED
from millstream.sql_options import SQL_PREFIXES as SQL_PREFIXES  # with it, the options of SQL are declared too
from millstream.times import Duration

# ------------------------------------------------------------------------------------------------- the program

PARALLELISM = Option("parallelism.default", 1, "The parallelism of operators that do not set their own.", int)
MAX_PARALLELISM = Option(
    "pipeline.max-parallelism", -1, "The number of key groups of keyed state; -1 derives it from the parallelism.", int
)
PIPELINE_NAME: Option[str | None] = Option("pipeline.name", None, "The name of the job.", str)
OPERATOR_CHAINING = Option(
    "pipeline.operator-chaining.enabled",
    True,
    "Whether operators that need no exchange between them are chained.",
    bool,
    ("pipeline.operator-chaining",),
)
CHAIN_MIXED_MAX_PARALLELISM = Option(
    "pipeline.operator-chaining.chain-operators-with-different-max-parallelism",
    True,
    "Whether operators with different max parallelism are chained too.",
    bool,
)
AUTO_WATERMARK_INTERVAL = Option(
    "pipeline.auto-watermark-interval",
    Duration.of_millis(200),
    "0 disables periodic watermarks; with any other value, they are generated with every epoch.",
    Duration,
)
OBJECT_REUSE = Option(
    "pipeline.object-reuse",
    False,
    "Whether records are passed to the next function without a copy. It is faster, and only right if no function "
    "changes a record that it has received or emitted.",
    bool,
)
AUTO_GENERATE_UIDS = Option(
    "pipeline.auto-generate-uids",
    True,
    "Whether operators without a uid get a generated one; if false, such a program is rejected before the job starts.",
    bool,
)
GENERIC_TYPES = Option(
    "pipeline.generic-types",
    True,
    "Whether elements without a declared type can be used as Python objects; if false, such a program is rejected.",
    bool,
)
GLOBAL_JOB_PARAMETERS: Option[dict[str, str] | None] = Option(
    "pipeline.global-job-parameters", None, "Parameters that every function of the job can read.", dict
)
RUNTIME_MODE = Option(
    "execution.runtime-mode",
    "STREAMING",
    "Whether the job runs in streaming or in batch mode; AUTOMATIC is batch mode if all sources are bounded.",
    str,
    choices=("STREAMING", "BATCH", "AUTOMATIC"),
)
TMP_DIRS: Option[str | None] = Option(
    "io.tmp.dirs",
    None,
    "The directory of local state. By default, it is the directory of the system for temporary files.",
    str,
)

# ------------------------------------------------------------------------------------------------- checkpoints

CHECKPOINT_INTERVAL: Option[Duration | None] = Option(
    "execution.checkpointing.interval",
    None,
    "The interval between checkpoints; without it, checkpointing is disabled.",
    Duration,
)
CHECKPOINT_TIMEOUT = Option(
    "execution.checkpointing.timeout", Duration.of_minutes(10), "A checkpoint that takes longer is aborted.", Duration
)
CHECKPOINT_MIN_PAUSE = Option(
    "execution.checkpointing.min-pause",
    Duration.of_millis(0),
    "The minimum time between the end of a checkpoint and the start of the next one.",
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
    "Where checkpoints are stored: in the process of the job, or in a directory.",
    str,
    ("state.checkpoint-storage",),
    choices=("jobmanager", "filesystem"),
)
CHECKPOINT_DIR: Option[str | None] = Option(
    "execution.checkpointing.dir",
    None,
    "The directory of checkpoints.",
    str,
    ("state.checkpoints.dir", "state.backend.fs.checkpointdir"),
)
SAVEPOINT_DIR: Option[str | None] = Option(
    "execution.checkpointing.savepoint-dir",
    None,
    "The default directory of savepoints.",
    str,
    ("state.savepoints.dir", "savepoints.state.backend.fs.dir"),
)
CHECKPOINTS_RETAINED = Option(
    "execution.checkpointing.num-retained",
    3,
    "The number of completed checkpoints that are kept (Flink's default is 1).",
    int,
    ("state.checkpoints.num-retained",),
)
TOLERABLE_FAILED_CHECKPOINTS = Option(
    "execution.checkpointing.tolerable-failed-checkpoints",
    0,
    "How many consecutive checkpoints may fail before the job fails.",
    int,
)
CHECKPOINT_RETENTION = Option(
    "execution.checkpointing.externalized-checkpoint-retention",
    "NO_EXTERNALIZED_CHECKPOINTS",
    "Whether checkpoints are kept when the job is cancelled.",
    str,
    choices=("NO_EXTERNALIZED_CHECKPOINTS", "RETAIN_ON_CANCELLATION", "DELETE_ON_CANCELLATION"),
)
CHECKPOINT_INTERVAL_DURING_BACKLOG: Option[Duration | None] = Option(
    "execution.checkpointing.interval-during-backlog",
    None,
    "Ignored: sources do not report a backlog.",
    Duration,
    kind="ignored",
)
CHECKPOINT_CREATE_SUBDIR = Option(
    "execution.checkpointing.create-subdir",
    True,
    "Ignored: the checkpoints of a job are always in a subdirectory with the id of the job.",
    bool,
    ("state.checkpoints.create-subdir",),
    kind="ignored",
)
INCREMENTAL_CHECKPOINTS = Option(
    "execution.checkpointing.incremental",
    False,
    "Has no effect: checkpoints are always incremental.",
    bool,
    ("state.backend.incremental",),
)
SNAPSHOT_COMPRESSION = Option(
    "execution.checkpointing.snapshot-compression", False, "Whether state files are compressed (lz4).", bool
)
FILE_ACCESS = Option(
    "millstream.files.access",
    "owner",
    "Who can read the files that a job writes to local or mounted disks: checkpoints, savepoints, logs, leases, staged "
    "output. `owner` is the user of the process; `group` adds its group; `umask` follows the umask. Data files of "
    "Delta and Iceberg tables, which other users read, always follow the umask. The setting applies to all jobs of a "
    "process.",
    str,
    choices=("owner", "group", "umask"),
)
FILE_MERGING = Option(
    "execution.checkpointing.file-merging.enabled",
    True,
    "Whether small state files of a checkpoint are merged into one (Flink's default is false).",
    bool,
)
ON_INTERRUPT = Option(
    "millstream.on-interrupt",
    "cancel",
    "What Ctrl-C does while a program waits for its job: cancel the job, or stop it with a savepoint.",
    str,
    choices=("cancel", "savepoint"),
)
RECOVERY_PATH: Option[str | None] = Option(
    "execution.state-recovery.path",
    None,
    "The checkpoint or savepoint from which the job starts.",
    str,
    ("execution.savepoint.path",),
)
RECOVERY_IGNORE_UNCLAIMED = Option(
    "execution.state-recovery.ignore-unclaimed-state",
    False,
    "Whether state of operators that the program no longer has can be dropped.",
    bool,
    ("execution.savepoint.ignore-unclaimed-state",),
)
RECOVERY_ALLOW_OLDER = Option(
    "millstream.recovery.allow-older-checkpoint",
    False,
    "Whether a job whose newest checkpoint is damaged can continue from an older one. Output that was committed after "
    "the older one can then appear twice.",
    bool,
)
RECOVERY_CLAIM_MODE = Option(
    "execution.state-recovery.claim-mode",
    "NO_CLAIM",
    "Whether the job owns the checkpoint or savepoint it started from, and deletes it when it is no longer needed.",
    str,
    ("execution.savepoint-restore-mode",),
    choices=("NO_CLAIM", "CLAIM"),
)

# ------------------------------------------------------------------------------------------------------- state

STATE_BACKEND = Option(
    "state.backend.type",
    "hashmap",
    "The state backend: in memory (hashmap) or on disk (lmdb; rocksdb and forst are accepted as other names of it).",
    str,
    ("state.backend",),
    choices=("hashmap", "lmdb", "rocksdb", "forst"),
)
STATE_CHANGELOG: Option[bool | None] = Option(
    "state.changelog.enabled",
    None,
    "Has no effect: state is always written as a changelog.",
    bool,
    ("state.backend.changelog.enabled",),
)
STATE_CACHE_SIZE = Option(
    "millstream.state.cache-size", MemorySize(256 << 20), "The size of the cache of state on disk.", MemorySize
)

# ---------------------------------------------------------------------------------------------------- restarts

RESTART_STRATEGY: Option[str | None] = Option(
    "restart-strategy.type",
    None,
    "Whether and when a failed job is restarted. The default is exponential-delay with checkpointing, none without.",
    str,
    ("restart-strategy",),
    choices=(
        *("none", "off", "disable", "fixed-delay", "fixeddelay", "failure-rate", "failurerate"),
        *("exponential-delay", "exponentialdelay"),
    ),
)
FIXED_DELAY_ATTEMPTS = Option(
    "restart-strategy.fixed-delay.attempts", 1, "The number of restarts before the job fails.", int
)
FIXED_DELAY_DELAY = Option(
    "restart-strategy.fixed-delay.delay", Duration.of_seconds(1), "The delay before a restart.", Duration
)
FAILURE_RATE_MAX = Option(
    "restart-strategy.failure-rate.max-failures-per-interval",
    1,
    "The number of failures in the interval that do not fail the job.",
    int,
)
FAILURE_RATE_INTERVAL = Option(
    "restart-strategy.failure-rate.failure-rate-interval",
    Duration.of_minutes(1),
    "The interval for counting failures.",
    Duration,
)
FAILURE_RATE_DELAY = Option(
    "restart-strategy.failure-rate.delay", Duration.of_seconds(1), "The delay before a restart.", Duration
)
EXPONENTIAL_INITIAL = Option(
    "restart-strategy.exponential-delay.initial-backoff",
    Duration.of_seconds(1),
    "The delay before the first restart.",
    Duration,
)
EXPONENTIAL_MAX = Option(
    "restart-strategy.exponential-delay.max-backoff",
    Duration.of_minutes(1),
    "The maximum delay before a restart.",
    Duration,
)
EXPONENTIAL_MULTIPLIER = Option(
    "restart-strategy.exponential-delay.backoff-multiplier",
    1.5,
    "The factor by which the delay grows after each failure.",
    float,
)
EXPONENTIAL_RESET = Option(
    "restart-strategy.exponential-delay.reset-backoff-threshold",
    Duration.of_hours(1),
    "How long the job must run without failure before the delay is reset.",
    Duration,
)
EXPONENTIAL_JITTER = Option(
    "restart-strategy.exponential-delay.jitter-factor",
    0.1,
    "Ignored: the delay is not randomized.",
    float,
    kind="ignored",
)
EXPONENTIAL_ATTEMPTS = Option(
    "restart-strategy.exponential-delay.attempts-before-reset-backoff",
    2147483647,
    "The number of restarts before the job fails.",
    int,
)

# ------------------------------------------------------------------------------------------------------ Python

PYTHON_FILES: Option[str | None] = Option(
    "python.files", None, "Files that are added to the Python path of every task.", str
)
PYTHON_ARCHIVES: Option[str | None] = Option(
    "python.archives", None, "Archives that are extracted for every task.", str
)
PYTHON_REQUIREMENTS: Option[str | None] = Option(
    "python.requirements", None, "A requirements file whose packages every task can import.", str
)
CACHED_FILES: Option[str | None] = Option(
    "pipeline.cached-files",
    None,
    "Files that every function can read by name: name:n,path:'p',executable:true, separated by semicolons.",
    str,
)
PYTHON_EXECUTABLE: Option[str | None] = Option(
    "python.executable", None, "The Python interpreter of tasks. The default is that of the program.", str
)

# ------------------------------------------------------------------------------------------------------ epochs

EPOCH_TARGET_DURATION = Option(
    "millstream.epoch.target-duration",
    Duration.of_seconds(1),
    "The duration that the size of epochs is adapted to.",
    Duration,
)
EPOCH_MAX_RECORDS: Option[int | None] = Option(
    "millstream.epoch.max-records", None, "The maximum number of records that sources read in an epoch.", int
)
EPOCH_MAX_BYTES = Option(
    "millstream.epoch.max-bytes",
    MemorySize(256 << 20),
    "The maximum number of bytes that sources read in an epoch.",
    MemorySize,
)
EPOCH_MIN_INTERVAL = Option(
    "millstream.epoch.min-interval",
    Duration.of_millis(0),
    "The minimum time between the starts of two epochs.",
    Duration,
)
EPOCH_IDLE_INTERVAL = Option(
    "millstream.epoch.idle-interval",
    Duration.of_millis(100),
    "How long to wait before sources without new records are polled again.",
    Duration,
)
EPOCH_DEADLINE = Option(
    "millstream.epoch.deadline", Duration.of_minutes(10), "An epoch that takes longer is cancelled and fails.", Duration
)
TASK_CANCELLATION_TIMEOUT = Option(
    "task.cancellation.timeout",
    Duration.of_minutes(3),
    "How long an epoch that was cancelled at its deadline may take to end. After that, Spark is abandoned: its JVM is "
    "killed if the job started it, and the job restarts with a new one. 0 means no limit. A commit that is in progress "
    "when a job is cancelled is interrupted after the same time, at most after 10 s.",
    Duration,
)
HEARTBEAT_INTERVAL = Option(
    "heartbeat.interval",
    Duration.of_seconds(10),
    "How often a driver that waits for Spark checks that the JVM is alive.",
    Duration,
)
HEARTBEAT_TIMEOUT = Option(
    "heartbeat.timeout",
    Duration.of_seconds(50),
    "How long the JVM of Spark may take to answer before it counts as lost, and how long a standalone cluster may "
    "leave a job without executors after it had some.",
    Duration,
)
BLOCK_MAX_RECORDS = Option("millstream.block.max-records", 65536, "The maximum number of records of a block.", int)
BATCH_RUN_SIZE = Option(
    "millstream.batch.run-size",
    MemorySize(64 << 20),
    "How many bytes a subtask of a batch job buffers for an exchange by key before it sorts and sends them.",
    MemorySize,
)
SQL_BATCH_ENGINE = Option(
    "millstream.sql.batch-engine",
    "catalyst",
    "What runs the queries of a batch job: Spark SQL, with millstream's operators where Spark has no equivalent, or "
    "millstream's operators only.",
    str,
    choices=("catalyst", "operators"),
)
PRE_AGGREGATION = Option(
    "millstream.pre-aggregation.enabled",
    False,
    "Whether tumbling and sliding event-time windows with reduce or aggregate, and reduce in a batch job, are also "
    "aggregated before the exchange.",
    bool,
)
SCHEDULER = Option(
    "jobmanager.scheduler",
    "Default",
    "Whether the parallelism is fixed, or follows the number of slots of the cluster, up to the configured "
    "parallelism.",
    str,
    choices=("Default", "Adaptive"),
)
SCHEDULER_MODE: Option[str | None] = Option(
    "scheduler-mode",
    None,
    "With REACTIVE, the parallelism follows the number of slots of the cluster, up to the max parallelism.",
    str,
    choices=("REACTIVE",),
)
ADAPTIVE_STABILIZATION = Option(
    "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout",
    Duration.of_minutes(1),
    "How long the number of slots must stay the same before a running job is rescaled to it.",
    Duration,
)
ADAPTIVE_COOLDOWN = Option(
    "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling",
    Duration.of_seconds(30),
    "The minimum time between two rescalings by the adaptive scheduler.",
    Duration,
    ("jobmanager.adaptive-scheduler.scaling-interval.min",),
)
SPARK_MASTER = Option("millstream.spark.master", "local[*]", "The Spark master that runs the job.", str)
SLOT_RESOURCES: Option[dict[str, str]] = Option(
    "millstream.slot.resources",
    {},
    "What Spark reserves for each slot of a streaming job, such as `cpus:2,gpu:1`, on clusters with stage-level "
    "scheduling. The resources of slot sharing groups set it. Resident slots reserve one core each.",
    dict,
)
SPARK_PUBLIC_API = Option(
    "millstream.spark.public-api",
    False,
    "Build Spark jobs with PySpark's public API only. Epochs are slower, and slots have no workers of their own. For a "
    "vendor's build of Spark on which jobs fail otherwise.",
    bool,
)
ENGINE = Option(
    "millstream.engine",
    "jobs",
    "How Spark runs the epochs of a streaming job: each as a Spark job, or on resident slots, which are the tasks of "
    "one long barrier stage and take a few milliseconds for a small epoch. A resident job holds a task slot for each "
    "of its slots. With `auto`, resident slots are used where they fit; the log says if not, and why. Batch jobs "
    "always run as Spark jobs.",
    str,
    choices=("auto", "resident", "jobs"),
)
RESIDENT_MEMORY = Option(
    "millstream.resident.receive-memory",
    MemorySize(256 << 20),
    "How many bytes of received blocks a resident slot keeps in memory during an epoch; it writes more to disk.",
    MemorySize,
)

# ------------------------------------------------------------------------------------------------ availability

HA_TYPE = Option(
    "high-availability.type",
    "NONE",
    "With `lease`, several drivers can be started for one job; the driver that holds a lease on shared storage runs "
    "it.",
    str,
    ("high-availability",),
    choices=("NONE", "lease"),
)
HA_STORAGE_DIR: Option[str | None] = Option(
    "high-availability.storageDir", None, "The directory or URI of leases on shared storage.", str
)
HA_CLUSTER_ID = Option(
    "high-availability.cluster-id",
    "/default",
    "Identifies one deployment of a program: drivers with the same id and job name stand by for each other.",
    str,
)
HA_LEASE_DURATION = Option(
    "millstream.high-availability.lease-duration",
    Duration.of_seconds(6),
    "How long a leading driver may fail to renew its lease before another one takes over.",
    Duration,
)
HA_PROGRESS_TIMEOUT = Option(
    "millstream.high-availability.progress-timeout",
    Duration.of_minutes(30),
    "How long a driver may make no progress before it ends with SUSPENDED: a leader that accepts no new epoch and "
    "completes no checkpoint although there is input gives up its lease, and a driver that stands by gives up when it "
    "cannot read the lease. It must be larger than the sum of millstream.epoch.deadline, task.cancellation.timeout, "
    "execution.checkpointing.timeout and execution.checkpointing.interval; if it is not set, it is at least "
    "1.2 times this sum.",
    Duration,
)

# ----------------------------------------------------------------------------------------------------- ignored

UNALIGNED_CHECKPOINTS = Option(
    "execution.checkpointing.unaligned.enabled",
    False,
    "Ignored: no records are in flight between two epochs, so there is nothing to align.",
    bool,
    ("execution.checkpointing.unaligned",),
    kind="ignored",
)
FORCE_UNALIGNED_CHECKPOINTS = Option(
    "execution.checkpointing.unaligned.forced",
    False,
    "Ignored: there is nothing to align.",
    bool,
    kind="ignored",
)
ALIGNED_CHECKPOINT_TIMEOUT = Option(
    "execution.checkpointing.aligned-checkpoint-timeout",
    Duration.of_millis(0),
    "Ignored: there is nothing to align.",
    Duration,
    ("execution.checkpointing.alignment-timeout",),
    kind="ignored",
)
MAX_CONCURRENT_CHECKPOINTS = Option(
    "execution.checkpointing.max-concurrent-checkpoints",
    1,
    "Ignored: a checkpoint always ends before the next one starts.",
    int,
    kind="ignored",
)
BUFFER_TIMEOUT = Option(
    "execution.buffer-timeout.interval",
    Duration.of_millis(100),
    "Ignored: an epoch flushes all buffers when it ends.",
    Duration,
    ("execution.buffer-timeout",),
    kind="ignored",
)
CLOSURE_CLEANER_LEVEL = Option(
    "pipeline.closure-cleaner-level",
    "RECURSIVE",
    "Ignored: closures in Python hold only the variables they use.",
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
    "Ignored: latency is measured for epochs, without latency markers.",
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

# ------------------------------------------------------------------------------------------------- the REST server

REST_BIND_PORT: Option[str | None] = Option(
    "rest.bind-port",
    None,
    "The port of the REST server, or a range such as 8081-8090 whose first free port is used; 0 is any free port. The "
    "server starts if this option or `rest.port` is set.",
    str,
)
REST_PORT = Option("rest.port", 8081, "The port of the REST server, if `rest.bind-port` is not set.", int)
REST_BIND_ADDRESS = Option(
    "rest.bind-address",
    "127.0.0.1",
    "The address that the REST server listens on. One that other machines reach needs `millstream.rest.token-file`.",
    str,
)
REST_ADDRESS = Option(
    "rest.address",
    "localhost",
    "The host of the session cluster that clients connect to; its port is `rest.port`.",
    str,
)
WEB_SUBMIT = Option(
    "web.submit.enable",
    True,
    "Whether programs can be uploaded to a session cluster and run there, in the web UI and over REST. SQL is not "
    "affected.",
    bool,
)
WEB_CANCEL = Option(
    "web.cancel.enable",
    True,
    "Whether the web UI has buttons that cancel jobs and programs or stop jobs. REST is not affected.",
    bool,
)
WEB_RESCALE = Option(
    "web.rescale.enable",
    True,
    "Whether the web UI has a button that changes the parallelism of a job. REST is not affected.",
    bool,
)
REST_TOKEN_FILE: Option[str | None] = Option(
    "millstream.rest.token-file",
    None,
    "A file with the token that requests to the REST server must have. It is created if it does not exist. Clients "
    "read the token that they send from it.",
    str,
)
FLAMEGRAPH_ENABLED = Option(
    "rest.flamegraph.enabled",
    False,
    "Whether flame graphs can be requested. Tasks of a vertex are sampled only while its flame graph is looked at.",
    bool,
)
FLAMEGRAPH_DELAY = Option(
    "rest.flamegraph.delay-between-samples",
    Duration.of_millis(50),
    "The time between two samples of a task, for flame graphs.",
    Duration,
)
FLAMEGRAPH_REFRESH = Option(
    "rest.flamegraph.refresh-interval",
    Duration.of_minutes(1),
    "A flame graph is made of the samples of this time.",
    Duration,
)
FLAMEGRAPH_DEPTH = Option("rest.flamegraph.stack-depth", 100, "The largest depth of a stack in a flame graph.", int)
SHOW_DROPPED_RECORDS = Option(
    "millstream.rest.show-dropped-records",
    True,
    "Whether the REST server shows the keys and values of some of the records that were dropped, because they were "
    "late or could not be decoded, and the keys that have many records. Without it, only the reasons of dropped "
    "records are shown.",
    bool,
)
REST_READ_ONLY_TOKEN_FILE: Option[str | None] = Option(
    "millstream.rest.read-only-token-file",
    None,
    "A file with a second token, with which requests to the REST server may read only. It is created if it does not "
    "exist. Needs `millstream.rest.token-file`.",
    str,
)
REST_BASIC = Option(
    "millstream.rest.basic-authentication",
    False,
    "Whether the tokens are accepted as passwords of HTTP basic authentication, too, with any user name. A browser "
    "then asks for the password before it shows the web UI. Needs `millstream.rest.token-file`.",
    bool,
)
REST_TLS = Option(
    "security.ssl.rest.enabled",
    False,
    "Whether the REST server, the SQL gateway and the server of metrics use TLS. Clients then connect with `https`.",
    bool,
)
REST_TLS_CERTIFICATE: Option[str | None] = Option(
    "millstream.rest.ssl.certificate-file",
    None,
    "The certificate of the server and those that signed it, as PEM. Flink's options name Java keystores instead.",
    str,
)
REST_TLS_KEY: Option[str | None] = Option(
    "millstream.rest.ssl.key-file", None, "The private key of the certificate, as PEM and without a passphrase.", str
)
REST_TLS_CA: Option[str | None] = Option(
    "millstream.rest.ssl.ca-file",
    None,
    "The certificates that clients trust, as PEM, if those of the operating system do not include the server's.",
    str,
)
REST_MAX_UPLOAD = Option(
    "rest.server.max-content-length", 104_857_600, "The largest program that can be uploaded, in bytes.", int
)
TASK_SLOTS: Option[int | None] = Option(
    "taskmanager.numberOfTaskSlots",
    None,
    "How many slots the jobs of a session cluster share. The default is the number of tasks that Spark can run at "
    "once.",
    int,
)
ARCHIVE_DIR: Option[str | None] = Option(
    "jobmanager.archive.fs.dir",
    None,
    "The directory to which a session cluster writes the jobs that have ended, in the form that Flink's history server "
    "reads.",
    str,
)

for _reason, _keys in IGNORED.items():
    for _key in _keys.split():
        Option(_key, None, f"Ignored: {_reason}.", str, kind="ignored")
