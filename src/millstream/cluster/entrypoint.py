"""Composition root of the control plane: the only module that chooses an engine, reads the clock and draws ids.

Promises: a submitted job runs in its own thread to a final status; programs and options are checked before that thread
starts.
Does not know: how programs are written."""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import shutil
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

from millstream import options
from millstream.checkpoint.storage import CheckpointStorage
from millstream.cluster.accumulators import AcceptedTotals
from millstream.cluster.batch import BatchPolicy, batch_settings
from millstream.cluster.checkpoint_schedule import CheckpointSchedule
from millstream.cluster.checkpoints import Checkpoints
from millstream.cluster.dependencies import bundle_dependencies
from millstream.cluster.dispatcher import DispatchedJob, Dispatcher
from millstream.cluster.hosting import Host
from millstream.cluster.job_events import CheckpointDone, EpochDone, JobEvent
from millstream.cluster.job_execution import JobExecution
from millstream.cluster.job_master import JobMaster
from millstream.cluster.job_samples import JobSamples
from millstream.cluster.job_statistics import EpochSample, JobStatistics, Statistics, Timed, VertexSample
from millstream.cluster.leadership import Leadership
from millstream.cluster.lease import FileLease
from millstream.cluster.log_lines import TASKS, LogLines, describe_event
from millstream.cluster.max_parallelism import JobLayout
from millstream.cluster.metrics.collect import collect_metrics
from millstream.cluster.metrics.reporting import ReportsEvents, Server, start_event_reporters, start_reporters
from millstream.cluster.open_snapshots import OpenSnapshots
from millstream.cluster.rescale import Adaptive, RequestedParallelism, max_useful_parallelism
from millstream.cluster.settings import JobSettings, job_settings
from millstream.cluster.split_progress import SplitProgress
from millstream.cluster.streaming import StreamingPolicy
from millstream.cluster.submission import SubmittedJob
from millstream.config.configuration import Configuration
from millstream.engine.contract import Deployment, Engine
from millstream.engine.scratch import PREFIX, Hold
from millstream.engine.spark.resident.engine import create_engine
from millstream.engine.spark.spark_host import SparkHost
from millstream.errors import UserError
from millstream.files.access import set_file_access
from millstream.files.local import LocalFileSystem
from millstream.files.locations import is_uri
from millstream.files.remote import ObjectStore
from millstream.graph.execution_plan import ExecutionPlan, execution_plan
from millstream.graph.job_graph import job_graph
from millstream.graph.stream_graph import StreamGraph
from millstream.option_keys import ignored_keys, unknown_keys
from millstream.serialization import codec
from millstream.types.factory import TypeInformation

_log = logging.getLogger("millstream")
_warned: set[str] = set()
_KEPT_EPOCHS = 500  # the newest jobs are kept for clients
DISPATCHER = Dispatcher()
LOG_LINES = LogLines()
_servers: list[Any] = []  # the REST server of this process
_event_reporters: list[list[ReportsEvents]] = []
_metric_servers: list[list[Server]] = []  # the servers of its metric reporters, once they are started
_applications: dict[str, Callable[[], Any]] = {}  # applications of higher layers that the REST server serves, by path
_hosts: list[Host] = []  # the session cluster that this process belongs to
_server_lock = threading.Lock()
_submissions: Counter[str] = Counter()  # counts jobs by name: a program submits them in the same order wherever it runs


class SystemClock:
    """The clock of this machine."""

    def now(self) -> int:
        """Return the time in milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def precise(self) -> float:
        """Return seconds of a monotonic clock, to measure durations."""
        return time.perf_counter()


def new_uuid() -> str:
    """Return a random UUID as text."""
    return str(uuid.uuid4())


class RunningJob:
    """A job and its thread. It keeps the newest epochs and statistics, so that its memory does not grow with time."""

    def __init__(self, job_id: str, name: str, configuration: Configuration) -> None:
        self.id, self.name, self.configuration = job_id, name, configuration
        self.keep_alive: Callable[[], None] = lambda: None
        self.epochs: deque[EpochDone] = deque(maxlen=_KEPT_EPOCHS)
        self.totals = AcceptedTotals()
        self._statistics = JobStatistics(SystemClock())
        self.listeners: list[Callable[[JobEvent], None]] = [self._statistics]
        self._failed_listeners: list[Callable[[JobEvent], None]] = []
        self.started_at = time.perf_counter()
        self.submitted_at = SystemClock().now()
        self.ended_at: float | None = None
        self.master: JobMaster
        self.snapshots: OpenSnapshots
        self.classes: codec.Classes
        self.samples = JobSamples(configuration, SystemClock())
        self._host: Host | None = None
        self._thread: threading.Thread

    def notify(self, event: JobEvent) -> None:
        """Keep an event of the job, and notify the listeners."""
        if isinstance(event, EpochDone):
            event = self.samples.add(event)
            self.epochs.append(event)
            self.keep_alive()
            self.totals.accept(event.epoch, event.accumulators, event.metrics)
        elif isinstance(event, CheckpointDone):
            self.totals.checkpoint()
            self.snapshots.expire()
        if (line := describe_event(event)) is not None:
            LOG_LINES.add(SystemClock().now(), line[0], f"job {self.name}", line[1])
        for listener in self.listeners:
            self._call(listener, event)

    def _call(self, listener: Callable[[JobEvent], None], event: JobEvent) -> None:
        """Call a listener. Its error never fails the job; the first one is logged."""
        try:
            listener(event)
        except Exception:
            if all(listener is not failed for failed in self._failed_listeners):
                self._failed_listeners.append(listener)
                _log.exception(
                    "a listener of job '%s' raised on %s; the job continues, and further errors of this listener are "
                    "not logged: %r",
                    self.name,
                    type(event).__name__,
                    listener,
                )

    def start(
        self, master: JobMaster, classes: codec.Classes, clean_up: Callable[[], None], host: Host | None = None
    ) -> None:
        """Run the job in a new thread, which decodes instances of the job's own classes only. In a session cluster, the
        thread waits for slots first."""
        self.master, self.classes, self._host = master, classes, host

        def run() -> None:
            try:
                if host is not None:
                    host.wait(self.id, master.is_cancelled)
                with codec.using(classes):
                    master.run()
            finally:
                self.ended_at = time.perf_counter()
                clean_up()
                if host is not None:
                    host.release(self.id)

        self._thread = threading.Thread(target=run, name=f"job-{self.name}", daemon=True)
        self._thread.start()

    def statistics(self) -> Statistics:
        """Return the current statistics."""
        return self._statistics.get()

    def history(self) -> tuple[Timed[Mapping[str, VertexSample]], ...]:
        """Return samples of the vertices of the last hours, by id, oldest first."""
        return self._statistics.history()

    def epoch_samples(self) -> tuple[Timed[EpochSample], ...]:
        """Return the newest epochs, oldest first."""
        return self._statistics.epoch_samples()

    def splits(self) -> dict[str, tuple[SplitProgress, ...]]:
        """Return the source splits as of the last accepted epoch, by operator id."""
        return self.master.splits()

    @property
    def epoch_count(self) -> int:
        """The number of accepted epochs."""
        return self.statistics().epochs

    @property
    def checkpoint_count(self) -> int:
        """The number of completed checkpoints."""
        return self.statistics().checkpoint_count

    @property
    def checkpoints(self) -> list[CheckpointDone]:
        """The newest checkpoints, oldest first."""
        return [checkpoint.event for checkpoint in self.statistics().checkpoints]

    def plan(self) -> ExecutionPlan:
        """Return the plan at the current parallelism."""
        return self.master.plan

    def waiting_reason(self) -> str | None:
        """Return what the job waits for before it can start; None if it does not wait."""
        return None if self._host is None else self._host.reason(self.id)

    def accumulators(self) -> dict[str, Any]:
        """Return the values of accumulators and user metrics."""
        return self.totals.values()

    def cancel(self) -> None:
        """Cancel the job."""
        self.master.cancel()

    def savepoint(self, directory: str | None, **options: Any) -> Future[str]:
        """Request a savepoint; `options` are fields of `SavepointRequest`."""
        answer = self.master.savepoint(directory, **options)
        answer.add_done_callback(self._add_savepoint)
        return answer

    def _add_savepoint(self, answer: Future[str]) -> None:
        if not answer.cancelled() and answer.exception() is None:
            self.snapshots.add_savepoint(answer.result())

    def checkpoint(self) -> Future[int]:
        """Request a checkpoint at the next epoch boundary; the future has its number."""
        return self.master.checkpoint()

    def rescale(self, parallelism: RequestedParallelism) -> Future[int]:
        """Request another parallelism."""
        if self._host is not None:
            self._host.request(self.id, self.name, self.master.slots_at(parallelism))
        return self.master.rescale(parallelism)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the end of the job; False if it has not ended in time."""
        self._thread.join(timeout)
        return not self._thread.is_alive()


def submit(
    graph: StreamGraph,
    configuration: Configuration,
    name: str,
    engine: Engine | None = None,
    listeners: Sequence[Callable[[JobEvent], None]] = (),
) -> RunningJob:
    """Check a program and start it as a job."""
    check_options(configuration)
    serve(configuration)
    report_metrics(configuration)
    event_reporters = report_events(configuration)
    set_file_access(configuration.get(options.FILE_ACCESS))
    settings = job_settings(configuration)
    if graph.batch:
        settings = batch_settings(settings, configuration)
    plan = execution_plan(job_graph(graph, name))
    for node in graph.nodes:
        if node.source is not None:
            node.source.check()
        if node.sink is not None:
            node.sink.check()
    job_id = _job_id(configuration, name)
    leadership = _leadership(configuration, settings, job_id)
    running = RunningJob(job_id, name, configuration)
    running.listeners.extend(listeners)
    for reporter in event_reporters:
        running.listeners.append(partial(reporter.on_event, job_id, name))
    scratch = Path(tempfile.mkdtemp(prefix=PREFIX, dir=_scratch_root(configuration)))
    hold = Hold(str(scratch))
    running.keep_alive = hold.touch
    try:
        checkpoints = _checkpoints(configuration, settings, job_id, scratch, temporary=graph.batch)
        checkpoints.merges = configuration.get(options.FILE_MERGING)
        running.snapshots = OpenSnapshots(checkpoints, configuration.get(options.RECOVERY_PATH), SystemClock())
        dependencies = bundle_dependencies(configuration, scratch)
    except Exception:
        shutil.rmtree(scratch, ignore_errors=True)
        hold.release()
        raise
    classes = declared_classes(graph)
    codec.declare(*classes)  # for results that the program reads in its own threads

    def deployment(deployment_id: str) -> Deployment:
        return Deployment(
            id=deployment_id,
            plan=plan,
            files=checkpoints.files(),
            local=str(scratch / "stores"),
            backend="hashmap" if graph.batch or configuration.get(options.STATE_BACKEND) == "hashmap" else "lmdb",
            classes=classes,
            parameters=dict(configuration.get(options.GLOBAL_JOB_PARAMETERS) or {}),  # type: ignore[arg-type]
            block_records=configuration.get(options.BLOCK_MAX_RECORDS),
            dependencies=dependencies,
            compressed_state=configuration.get(options.SNAPSHOT_COMPRESSION),
            cache_limit=int(configuration.get(options.STATE_CACHE_SIZE)) // 1024,
            object_reuse=configuration.get(options.OBJECT_REUSE),
            run_bytes=int(configuration.get(options.BATCH_RUN_SIZE)),
            storage=os.path.join(checkpoints.storage.root, job_id),
            file_access=configuration.get(options.FILE_ACCESS),
            scratch=str(scratch),
        )

    runner: Engine = engine or create_engine(configuration.to_dict())

    def clean_up() -> None:
        if deployment(job_id).uses_scratch:
            runner.clean_hosts(str(scratch))
        shutil.rmtree(scratch, ignore_errors=True)
        hold.release()

    layout = JobLayout(graph, name)
    most = max_useful_parallelism(graph) if settings.reactive else graph.parallelism
    adaptive = Adaptive(most, settings.stable_for, settings.rest) if settings.adaptive else None
    execution = JobExecution(
        SubmittedJob(job_id, name, plan, settings, deployment, leadership, layout, adaptive, uuid.uuid4().hex[:12]),
        runner,
        checkpoints,
        SystemClock(),
        time.sleep,
        running.notify,
        _show,
    )
    execution.sampled = running.samples.flame_graphs.sampled
    policy = BatchPolicy(execution) if graph.batch else StreamingPolicy(execution)
    master = JobMaster(execution, policy)
    host = _hosts[0] if _hosts else None
    if host is not None:
        try:
            host.request(job_id, name, plan.slots)
        except UserError:
            clean_up()
            raise
    running.start(master, codec.Classes(classes), clean_up, host)
    DISPATCHER.add(running)
    return running


def serve(configuration: Configuration) -> str | None:
    """Start the REST server of this process, once, if a port is configured; return its URL.

    Raises:
        UserError: The packages of the server are not installed.

    """
    if _hosts or not (configuration.contains(options.REST_BIND_PORT) or configuration.contains(options.REST_PORT)):
        return None
    ports = configuration.get(options.REST_BIND_PORT) or str(configuration.get(options.REST_PORT))
    address = configuration.get(options.REST_BIND_ADDRESS)
    return start_server(address, ports, read_security(configuration), configuration=configuration)


def report_metrics(configuration: Configuration) -> list[Server]:
    """Start the metric reporters of this process, once; return the servers from which metrics can be read.

    Raises:
        UserError: The options of a reporter are not valid, or its package is not installed.

    """
    settings = configuration.to_dict()
    if not any(key.startswith("metrics.reporter") for key in settings):
        return []
    with _server_lock:
        if not _metric_servers:
            security = None
            if configuration.contains(options.REST_TOKEN_FILE) or configuration.get(options.REST_TLS):
                security = read_security(configuration)
            clock = SystemClock()
            servers = start_reporters(settings, lambda: collect_metrics(DISPATCHER, clock.now()), clock.now, security)
            _metric_servers.append(servers)
        return _metric_servers[0]


def report_events(configuration: Configuration) -> list[ReportsEvents]:
    """Start the reporters of spans and events of this process, once, and return them.

    Raises:
        UserError: The options of a reporter are not valid, or its package is not installed.

    """
    settings = configuration.to_dict()
    if not any(key.startswith(("traces.reporter", "events.reporter")) for key in settings):
        return []
    with _server_lock:
        if not _event_reporters:
            _event_reporters.append(start_event_reporters(settings, SystemClock().now))
        return _event_reporters[0]


def read_security(configuration: Configuration) -> Any:
    """Return how servers of this process are protected; files of tokens that do not exist are created.

    Raises:
        UserError: The options do not fit together, or the packages of the server are not installed.

    """
    try:
        from millstream.cluster.rest import security
    except ModuleNotFoundError as missing:
        raise _server_needs(missing) from missing
    return security.read_security(configuration, new_token)


def start_server(
    address: str, ports: str, security: Any, session: Any = None, configuration: Configuration | None = None
) -> str:
    """Start the REST server of this process, once; return its URL. `security` is that of `read_security`, or a token.
    With `session`, it serves a session cluster; `configuration` has options of the web UI."""
    try:
        from millstream.cluster.rest.application import create_application
        from millstream.cluster.rest.context import RestContext
        from millstream.cluster.rest.lazy_application import LazyApplication
        from millstream.cluster.rest.security import Security
        from millstream.cluster.rest.server import RestServer
        from millstream.cluster.rest.token import Access
    except ModuleNotFoundError as missing:
        raise _server_needs(missing) from missing
    protection = Security(Access(security)) if isinstance(security, str) else security
    with _server_lock:
        if not _servers:
            mounted = {path: LazyApplication(create) for path, create in _applications.items()}
            settings = configuration or Configuration()
            context = RestContext(
                DISPATCHER, SystemClock(), new_id, protection.access, session, mounted, LOG_LINES, settings
            )
            _log.addHandler(LOG_LINES)
            has_token = protection.access is not None
            application = create_application(context)
            server = RestServer.start(application, address, ports, has_token=has_token, tls=protection.tls)
            _servers.append(server)
            _log.info("the REST server listens on %s", server.address)
        return str(_servers[0].address)


def add_application(path: str, create: Callable[[], Any]) -> None:
    """Serve an ASGI application below a path of the REST server, which is created with its first request. Call it
    before the server is started."""
    _applications[path] = create


def _server_needs(missing: ModuleNotFoundError) -> UserError:
    msg = f"the REST server needs the package '{missing.name}'"
    return UserError(msg, hint="install it: pip install 'millstream[rest]'")


def new_id() -> str:
    """Return a random id."""
    return uuid.uuid4().hex


def new_token() -> str:
    """Return a random token."""
    return secrets.token_urlsafe(32)


def create_spark_host(configuration: Configuration) -> SparkHost:
    """Return the Spark of a session cluster, which is not started yet."""
    return SparkHost(configuration.to_dict(), configuration.get(options.TASK_SLOTS))


def join_cluster(host: Host) -> None:
    """Run the jobs of this process in slots of a session cluster."""
    _hosts.append(host)


def wait_for_jobs() -> list[DispatchedJob]:
    """Wait until all jobs of this process have ended, and return them."""
    for job in DISPATCHER.jobs():
        assert isinstance(job, RunningJob)
        job.wait()
    return DISPATCHER.jobs()


def check_options(configuration: Configuration) -> None:
    """Refuse unknown options; warn once about each option that has no effect."""
    unknown = unknown_keys(configuration)
    if unknown:
        key, near = unknown[0]
        msg = f"unknown option '{key}'"
        raise UserError(msg, hint=f"did you mean '{near}'?" if near else "docs/reference/options.md lists all options")
    for key, reason in ignored_keys(configuration):
        if key not in _warned:
            _warned.add(key)
            _log.warning("option '%s' has no effect. %s", key, reason)


def declared_classes(graph: StreamGraph) -> tuple[type, ...]:
    """Return the classes that a program declares: those of its types, and those it registered."""
    classes: dict[type, None] = dict.fromkeys(graph.classes)

    def visit(type_info: TypeInformation | None) -> None:
        if type_info is None:
            return
        python_class = getattr(type_info, "cls", None)
        if python_class is not None:
            classes[python_class] = None
        for name in ("field_types", "elem_type", "key_type", "value_type"):
            inner = getattr(type_info, name, None)
            for inner_type in inner if isinstance(inner, list | tuple) else (inner,):
                if isinstance(inner_type, TypeInformation):
                    visit(inner_type)

    for node in graph.nodes:
        visit(node.output_type)
        visit(node.key_type)
        for side_type in node.side_types.values():
            visit(side_type)
    return tuple(classes)


def _job_id(configuration: Configuration, name: str) -> str:
    """Return a new id; with high availability, the id that every driver of this program derives for this job."""
    if configuration.get(options.HA_TYPE) == "NONE":
        return uuid.uuid4().hex
    number = _submissions[name]
    _submissions[name] += 1
    key = f"{configuration.get(options.HA_CLUSTER_ID)}\n{name}\n{number}"
    return hashlib.blake2b(key.encode(), digest_size=16).hexdigest()


def _leadership(configuration: Configuration, settings: JobSettings, job_id: str) -> Leadership | None:
    if configuration.get(options.HA_TYPE) == "NONE":
        return None
    directory = configuration.get(options.HA_STORAGE_DIR)
    if directory is None:
        msg = f"{options.HA_TYPE.key} is set, but {options.HA_STORAGE_DIR.key} is not"
        raise UserError(msg, hint="set it to a directory that every driver of the job can access")
    if settings.checkpoint_interval is None or configuration.get(options.CHECKPOINT_DIR) is None:
        if _hosts:  # a session cluster runs a program again; a job without checkpoints then starts from its beginning
            return None
        msg = "high availability needs checkpoints, from which another driver can take over"
        raise UserError(msg, hint=f"set {options.CHECKPOINT_INTERVAL.key} and {options.CHECKPOINT_DIR.key}")
    lease = create_lease(directory, job_id)
    duration = configuration.get(options.HA_LEASE_DURATION).to_milliseconds() / 1000
    patience = configuration.get(options.HA_PROGRESS_TIMEOUT).to_milliseconds() / 1000
    if not configuration.contains(options.HA_PROGRESS_TIMEOUT):  # at least the time that a healthy job may take
        replayed = max(settings.checkpoint_interval, settings.min_pause)  # milliseconds of epochs since the checkpoint
        longest = settings.deadline + settings.cancellation + settings.checkpoint_timeout + replayed
        patience = max(patience, 1.2 * longest / 1000)
    return Leadership(lease, holder_name(), duration, time.monotonic, time.sleep, patience=patience)


def create_lease(directory: str, name: str) -> FileLease:
    """Return a lease below a directory or URI that all drivers can access."""
    if is_uri(directory):
        CheckpointStorage(directory).check_writable()
        return FileLease(f"{directory.rstrip('/')}/{name}", ObjectStore.of(directory))
    root = Path(directory.removeprefix("file://"))
    LocalFileSystem().make_dirs(str(root))
    return FileLease(str(root / name))


def holder_name() -> str:
    """Return the name of this process, for leases."""
    return f"{os.uname().nodename}:{os.getpid()}"


def _checkpoints(
    configuration: Configuration, settings: JobSettings, job_id: str, scratch: Path, *, temporary: bool
) -> Checkpoints:
    schedule = CheckpointSchedule(settings.checkpoint_interval, settings.min_pause)
    directory = None if temporary else configuration.get(options.CHECKPOINT_DIR)
    if not temporary and directory is None and configuration.get(options.CHECKPOINT_STORAGE) == "filesystem":
        msg = f"{options.CHECKPOINT_STORAGE.key} is 'filesystem', but no directory is set"
        raise UserError(msg, hint=f"set {options.CHECKPOINT_DIR.key}")
    if directory is None:
        return Checkpoints(
            CheckpointStorage(str(scratch), job_id, sync=settings.checkpoint_interval is not None),
            schedule,
            temporary=True,
        )
    storage = CheckpointStorage(directory, job_id)
    storage.check_writable()
    return Checkpoints(storage, schedule, temporary=False)


def _scratch_root(configuration: Configuration) -> str | None:
    directories = configuration.get(options.TMP_DIRS)
    if directories is None:
        return None
    first = directories.replace(",", os.pathsep).split(os.pathsep)[0]
    Path(first).mkdir(parents=True, exist_ok=True)
    return first


def _show(text: str) -> None:
    LOG_LINES.add(SystemClock().now(), "INFO", TASKS, text)
    sys.stdout.write(text)
    sys.stdout.flush()
