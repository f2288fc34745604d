"""Lives of a simulated driver: a life lasts from the start of the process to its crash or to the end of the job.

Promises: `run` continues the job from the files of the world; the same arguments give the same run.
Does not know: Spark, threads, real time (except in a run with deadlines)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field

from millstream.checkpoint.storage import CheckpointStorage
from millstream.cluster.checkpoint_schedule import CheckpointSchedule
from millstream.cluster.checkpoints import Checkpoints
from millstream.cluster.deadlines import without_deadlines
from millstream.cluster.job_events import CheckpointDone, EpochDone, JobEvent, StatusChanged
from millstream.cluster.job_execution import JobExecution
from millstream.cluster.job_master import JobMaster
from millstream.cluster.leadership import Leadership
from millstream.cluster.max_parallelism import JobLayout
from millstream.cluster.settings import job_settings
from millstream.cluster.streaming import StreamingPolicy
from millstream.cluster.submission import SubmittedJob
from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment
from millstream.engine import epoch_level
from millstream.engine.contract import Deployment
from millstream.graph.execution_plan import execution_plan
from millstream.graph.job_graph import job_graph
from millstream.graph.stream_graph import StreamGraph
from millstream.job.job_status import JobStatus
from millstream_chaos.outputs.simulated_sinks import SINKS
from millstream_chaos.simulation.engine import LONGEST_MILLIS, SimulatedEngine, Stuck
from millstream_chaos.simulation.setup import Faults, Setup
from millstream_chaos.simulation.world import OUTPUT, ROOT, World
from millstream_chaos.storage.faulty_files import FaultyFileSystem, Operation, Reading, SimulatedCrash

RETRIES = 3  # how often a job reads a missing or damaged file again


@dataclass
class Life:
    """What happened in one life of a driver.

    Attributes:
        crashed: Whether the process crashed; otherwise the job has a final status.
        seen: The events of the job, in order.
        slept: The durations of all sleeps, in milliseconds.
        operations: The changes of storage.
        reads: The reads of storage.

    """

    crashed: bool = False
    status: JobStatus | None = None
    failure: BaseException | None = None
    seen: list[JobEvent] = field(default_factory=list)
    slept: list[int] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    reads: list[Operation] = field(default_factory=list)
    master: JobMaster | None = None

    @property
    def finished(self) -> bool:
        """Whether the job reported its end, even if the process crashed in the clean-up after it."""
        return any(isinstance(event, StatusChanged) and event.status is JobStatus.FINISHED for event in self.seen)

    @property
    def epochs(self) -> list[EpochDone]:
        """The accepted epochs."""
        return [event for event in self.seen if isinstance(event, EpochDone)]

    @property
    def checkpoints(self) -> list[CheckpointDone]:
        """The completed checkpoints."""
        return [event for event in self.seen if isinstance(event, CheckpointDone)]


def build_graph(setup: Setup, world: World) -> StreamGraph:
    """Return the graph of a setup, with a sink that writes to the disk of the world."""
    environment = StreamExecutionEnvironment(setup.configuration())
    world.sink = "repeating" if setup.repeats else setup.sink
    setup.program(environment).sink_to(SINKS[world.sink].build(world.files, OUTPUT)).uid("visible output")
    return environment._graph()


def run(
    setup: Setup,
    world: World,
    faults: Faults | None = None,
    *,
    listen: Callable[[JobEvent, JobMaster], None] | None = None,
    leadership: Leadership | None = None,
    meanwhile: Callable[[int], None] | None = None,
    deadlines: bool = False,
) -> Life:
    """Run one life of a driver, which continues the job from the files of the world.

    Args:
        setup: The job.
        world: The disk and the clock.
        faults: The faults of this life.
        listen: Is called with each event of the job.
        meanwhile: Is called with the number of each storage operation before it happens.
        leadership: The leadership of this driver, if there are several.
        deadlines: Whether deadlines are in force. Work with a deadline runs in another thread and expires by real time.

    """
    faults = faults or Faults()
    fails_at, mode = faults.storage or (None, "before")
    faulty = FaultyFileSystem(
        world.disk,
        fails_at,
        mode,
        lasting=faults.lasting,
        stall=lambda: world.clock.sleep(faults.stalls),
        meanwhile=meanwhile,
        lose_power=lambda how: world.lose_power(how, faults.seed),
        reading=None
        if faults.reads is None
        else Reading(*faults.reads, faults.reads_lasting, faults.behind, list(world.past)),
    )
    outer = world.files.replace_target(faulty)  # the files of a driver that is stopped meanwhile, if there is one
    world.faulty = faulty
    configuration = setup.configuration()
    settings = job_settings(configuration)
    graph = build_graph(setup, world)
    plan = execution_plan(job_graph(graph, "simulation"))
    storage = CheckpointStorage(ROOT, setup.job, fs=world.files)
    checkpoints = Checkpoints(
        storage, CheckpointSchedule(settings.checkpoint_interval, settings.min_pause), temporary=False
    )
    checkpoints.patience = RETRIES * (0.0,)  # only the virtual clock advances
    life = Life()

    def deployment(name: str) -> Deployment:
        return Deployment(
            id=name,
            plan=plan,
            files=checkpoints.files(),
            local=world.local,
            backend=setup.backend,
            block_records=setup.block_records,
        )

    def observe(event: JobEvent) -> None:
        life.seen.append(event)
        if listen is not None:
            listen(event, master)

    def sleep(seconds: float) -> None:
        life.slept.append(round(seconds * 1000))
        world.clock.sleep(seconds)
        if world.clock.millis > LONGEST_MILLIS:
            raise Stuck

    execution = JobExecution(
        SubmittedJob(
            setup.job,
            "simulation",
            plan,
            settings,
            deployment,
            leadership,
            JobLayout(graph, "simulation"),
            incarnation=f"{world.clock.now():x}" if setup.incarnation is None else setup.incarnation,
        ),
        SimulatedEngine(world.clock, faults),
        checkpoints,
        world.clock,
        sleep,
        observe,
        lambda _: None,
    )
    master = life.master = JobMaster(execution, StreamingPolicy(execution))
    try:
        with nullcontext() if deadlines else without_deadlines():  # only the virtual clock advances
            master.run()
        life.status, life.failure = master.job.status, master.failure
    except SimulatedCrash:
        life.crashed = True
        epoch_level.dispose_tasks()
    finally:
        life.operations, life.reads = faulty.operations, faulty.reads
        world.files.replace_target(outer)
    return life


def run_lives(setup: Setup, world: World, lives: Iterable[Faults] = (), *, most: int = 50) -> list[Life]:
    """Run lives until the job has finished or failed: first with the faults in `lives`, then without faults."""
    past: list[Life] = []
    faults = iter(lives)
    while len(past) < most:
        past.append(run(setup, world, next(faults, None)))
        if not past[-1].crashed or past[-1].finished:
            return past
    raise Stuck


def find_operation(setup: Setup, target: str, then: str | None = None) -> int:
    """Return the number of the storage operation that creates a file, in a run without faults.

    Args:
        setup: The job.
        target: The end of the file's path.
        then: If given, return the first later operation whose path contains this text.

    """
    with World() as world:
        operations = list(enumerate(run(setup, world).operations))
    created = next(number for number, operation in operations if operation.target.endswith(target))
    if then is None:
        return created
    return next(number for number, operation in operations if number > created and then in operation.path)
