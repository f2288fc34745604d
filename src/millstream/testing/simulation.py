"""The whole system in one process on a virtual clock, with failures at chosen places.

Promises: a `World` holds what outlives a process (files, the clock, workers' local stores); `run` is one life of a
driver in it, with the faults asked for; the same arguments give the same run. As a program, with `--seeds N`, it lives
through N random histories and compares what became visible with the run without faults.
Does not know: Spark, threads, real time."""

from __future__ import annotations

import argparse
import itertools
import logging
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

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
from millstream.config.configuration import Configuration
from millstream.datastream.data_stream import DataStream
from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment
from millstream.engine import epoch_level
from millstream.engine.contract import Deployment, EpochRequest, EpochResult
from millstream.errors import ExternalError, InternalError
from millstream.functions import MapFunction
from millstream.graph.execution_plan import ExecutionPlan, execution_plan
from millstream.graph.job_graph import job_graph
from millstream.graph.stream_graph import StreamGraph
from millstream.job.job_status import JobStatus
from millstream.testing import expected, sample_programs
from millstream.testing.case_sinks import SINKS
from millstream.testing.faults import CRASHES, FaultyFileSystem, Mode, Operation, Reading, ReadMode, SimulatedCrash
from millstream.testing.inline_engine import InlineEngine
from millstream.testing.memory_files import MemoryFileSystem, Named
from millstream.testing.power import PowerLoss
from millstream.testing.sample_programs import Longer

Program = Callable[[StreamExecutionEnvironment], DataStream]
_stumbled: dict[str, int] = {}

ROOT = "/checkpoints"
OUTPUT = "/output"
EPOCH_MILLIS = 10  # what an epoch costs on the virtual clock
_LONGEST = 7_200_000  # virtual milliseconds before a run counts as stuck
RETRIES = 3  # of reads of a file that is missing or damaged, as in a real job


class ManualClock:
    """A clock that moves when it is told to."""

    def __init__(self, now: int = 1_000_000) -> None:
        self.millis = float(now)

    def now(self) -> int:
        """Milliseconds."""
        return round(self.millis)

    def precise(self) -> float:
        """Seconds."""
        return self.millis / 1000

    def sleep(self, seconds: float) -> None:
        """Time passes."""
        self.millis += seconds * 1000


class Stuck(BaseException):
    """A run that does not end. No handler of errors may see it, so it is not an `Exception`."""


class EngineLost(ExternalError):
    """The engine failed because it was asked to."""


class EngineOutOfMemory(ExternalError):
    """The epoch was larger than it may be."""

    out_of_memory = True


@dataclass
class Stumble(MapFunction):
    """Passes records on; raises at record `at`, `times` times in all lives of this process, counted under `name`."""

    name: str
    at: int
    times: int = 1
    seen: int = 0

    def map(self, value: Any) -> Any:
        """The value."""
        self.seen += 1
        if self.seen == self.at and _stumbled.setdefault(self.name, 0) < self.times:
            _stumbled[self.name] += 1
            message = f"stumbled over {value}"
            raise ValueError(message)
        return value


@dataclass(frozen=True)
class Faults:
    """What goes wrong in one life of a driver. Everything counts from 0.

    `storage`: at which storage operation, and how, for `lasting` operations (a stall takes `stalls` seconds);
    `reads`: at which read of storage, and how, for `reads_lasting` reads (a stale answer is `behind` changes old);
    `engine`: epochs whose run fails; `most_records`: an epoch with more fails for memory; `forget`: chance that a
    worker is gone before a level; `flip`: chance that its successor has the other state backend; `attempts`: how each
    slot is attempted: "once", "twice" (the second counts), "broken" (the first dies half-way), "mixed" (both are read,
    each by some slots of the next level, as on Spark after a loss of map output: everywhere in the first run of each
    epoch, and nowhere in the next). `mixes`: chance that a slot's attempts are mixed, in any run."""

    storage: tuple[int, Mode] | None = None
    lasting: int = 1
    stalls: float = 30.0
    reads: tuple[int, ReadMode] | None = None
    reads_lasting: int = 1
    behind: int = 1
    engine: frozenset[int] = frozenset()
    most_records: int | None = None
    forget: float = 0.0
    flip: float = 0.0
    attempts: str = "once"
    mixes: float = 0.0
    seed: int = 0


@dataclass(frozen=True)
class Setup:
    """A program, its sink (one of `SINKS`), and how it is cut. `checkpoint_every` counts epochs; None for never."""

    program: Program
    parallelism: int = 2
    epoch_records: int = 7
    block_records: int = 3
    checkpoint_every: int | None = 2
    backend: str = "hashmap"
    options: Mapping[str, str] = field(default_factory=dict)
    repeats: bool = False
    sink: str = "visible"
    job: str = "job"
    incarnation: str | None = None  # another one for each process

    def configuration(self) -> Configuration:
        """The setup as options."""
        configuration = Configuration()
        settings = {
            "parallelism.default": str(self.parallelism),
            "millstream.epoch.max-records": str(self.epoch_records),
            "millstream.epoch.idle-interval": "20 ms",
            **self.options,
        }
        if self.checkpoint_every is not None:
            settings.setdefault("execution.checkpointing.interval", f"{self.checkpoint_every * EPOCH_MILLIS} ms")
        for key, value in settings.items():
            configuration.set_string(key, value)
        return configuration


class World:
    """What outlives a process. `faulty` is how the process of now sees the disk."""

    BEGIN = 1_000_000

    def __init__(self) -> None:
        self.disk = self.empty()
        self.files = Named.of(self.disk)
        self.faulty: FaultyFileSystem | None = None
        self.clock = ManualClock(self.BEGIN)
        self.sink = "visible"
        self.past: Sequence[MemoryFileSystem] = ()  # the disk before each of the last operations of the process before
        self.local = tempfile.mkdtemp(prefix="millstream-simulation-")

    @staticmethod
    def empty() -> MemoryFileSystem:
        """The disk of a world in which nothing has happened."""
        disk = MemoryFileSystem()
        disk.make_dirs(ROOT)
        disk.make_dirs(OUTPUT)
        return disk

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_: object) -> None:
        epoch_level.dispose_tasks()
        self.files.forget()
        shutil.rmtree(self.local, ignore_errors=True)

    def rewind(self, disk: MemoryFileSystem, millis: float, past: Sequence[MemoryFileSystem] = ()) -> None:
        """Be what it was at some time: with these files, and no worker alive."""
        epoch_level.dispose_tasks()
        shutil.rmtree(self.local, ignore_errors=True)
        self.disk, self.clock.millis = disk, millis
        self.past = past
        self.files.become(disk)

    def lose_power(self, how: PowerLoss, seed: int) -> None:
        """Keep of the disk what was synced, and of the rest what `how` says; workers and their stores are gone."""
        chance = np.random.default_rng([seed, 19])
        self.disk.lose_power(how, lambda count: int(chance.integers(count)))
        shutil.rmtree(self.local, ignore_errors=True)

    def visible(self) -> list[str]:
        """The rows that anyone can see."""
        return SINKS[self.sink].visible(self.disk, OUTPUT)


class _Engine(InlineEngine):
    """The inline engine, with the faults of its workers."""

    def __init__(self, clock: ManualClock, faults: Faults) -> None:
        super().__init__()
        self._clock, self._faults = clock, faults
        self._chance = np.random.default_rng([faults.seed, 7])
        self._epochs = itertools.count()
        self._latest = 0, 0  # generation and epoch of the last run
        self._again = False

    def run_epoch(self, request: EpochRequest) -> EpochResult:
        """Run, or fail as asked."""
        self._clock.sleep(EPOCH_MILLIS / 1000)
        if self._clock.millis > _LONGEST:
            raise Stuck
        number = next(self._epochs)
        if number in self._faults.engine:
            msg = f"the engine was lost in epoch {request.epoch}"
            raise EngineLost(msg)
        ranges = (data for parts in request.work.values() for part in parts for data in part.ranges)
        records = sum(data[3] or 0 for data in ranges)  # a source may not know them
        if self._faults.most_records is not None and records > self._faults.most_records:
            msg = f"{records} records of epoch {request.epoch} do not fit into memory"
            raise EngineOutOfMemory(msg)
        before, self._latest = self._latest, (request.generation, request.epoch)
        self._again = self._latest == before and not self._again
        return super().run_epoch(request)

    def _attempt(
        self, deployment: Deployment, level: int, index: int, inbox: list[bytes], asked: epoch_level.LevelRequest
    ) -> Iterable[tuple[int, bytes]]:
        faults = self._faults
        if self._chance.random() < faults.forget:
            epoch_level.dispose_tasks()
            if self._chance.random() < faults.flip:
                other = "lmdb" if deployment.backend == "hashmap" else "hashmap"
                assert self._deployment is not None
                deployment = self._deployment = replace(self._deployment, backend=other)
        elif self._deployment is not None:
            deployment = self._deployment
        if faults.attempts == "twice":
            list(super()._attempt(deployment, level, index, inbox, asked))
        elif faults.attempts == "broken":
            first = iter(super()._attempt(deployment, level, index, inbox, asked))
            for _ in range(int(self._chance.integers(0, 3))):
                next(first, None)
            first.close()  # type: ignore[attr-defined]
        made = list(super()._attempt(deployment, level, index, inbox, asked))
        mixes = (faults.attempts == "mixed" and not self._again) or self._chance.random() < faults.mixes
        if not mixes or level + 1 == deployment.plan.levels:  # of the last level the driver reads one attempt only
            return made
        again = list(super()._attempt(deployment, level, index, inbox, asked))
        reads_first = self._chance.random(deployment.plan.slots) < 0.5
        return [each for each in made if reads_first[each[0]]] + [each for each in again if not reads_first[each[0]]]


@dataclass
class Life:
    """How one life of a driver ended: `crashed`, or a final status."""

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
        """Whether the job reported its end, even if the process died while it tidied up."""
        return any(isinstance(each, StatusChanged) and each.status is JobStatus.FINISHED for each in self.seen)

    @property
    def epochs(self) -> list[EpochDone]:
        """The accepted epochs."""
        return [each for each in self.seen if isinstance(each, EpochDone)]

    @property
    def checkpoints(self) -> list[CheckpointDone]:
        """The completed checkpoints."""
        return [each for each in self.seen if isinstance(each, CheckpointDone)]


def graph_of(setup: Setup, world: World) -> StreamGraph:
    """The graph of a setup, its output going to the world."""
    environment = StreamExecutionEnvironment(setup.configuration())
    world.sink = "repeating" if setup.repeats else setup.sink
    setup.program(environment).sink_to(SINKS[world.sink].build(world.files, OUTPUT)).uid("visible output")
    return environment._graph()


def plan_of(setup: Setup, world: World) -> ExecutionPlan:
    """The execution plan of a setup."""
    return execution_plan(job_graph(graph_of(setup, world), "simulation"))


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
    """One life of a driver that runs the job of the setup, from whatever the world holds of it.

    `listen` is told what happens, `meanwhile` the number of each storage operation before it is done. With `deadlines`,
    work that has one is done in another thread and expires by real time."""
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
    outer = world.files.become(faulty)  # that of a driver that is stopped meanwhile, if there is one
    world.faulty = faulty
    configuration = setup.configuration()
    settings = job_settings(configuration)
    graph = graph_of(setup, world)
    plan = execution_plan(job_graph(graph, "simulation"))
    storage = CheckpointStorage(ROOT, setup.job, fs=world.files)
    checkpoints = Checkpoints(
        storage, CheckpointSchedule(settings.checkpoint_interval, settings.min_pause), temporary=False
    )
    checkpoints.patience = RETRIES * (0.0,)  # no time passes that is not this clock's
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

    def observe(observation: JobEvent) -> None:
        life.seen.append(observation)
        if listen is not None:
            listen(observation, master)

    def sleep(seconds: float) -> None:
        life.slept.append(round(seconds * 1000))
        world.clock.sleep(seconds)
        if world.clock.millis > _LONGEST:
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
        _Engine(world.clock, faults),
        checkpoints,
        world.clock,
        sleep,
        observe,
        lambda _: None,
    )
    master = life.master = JobMaster(execution, StreamingPolicy(execution))
    try:
        with nullcontext() if deadlines else without_deadlines():  # no time passes that is not this clock's
            master.run()
        life.status, life.failure = master.job.status, master.failure
    except SimulatedCrash:
        life.crashed = True
        epoch_level.dispose_tasks()
    finally:
        life.operations, life.reads = faulty.operations, faulty.reads
        world.files.become(outer)
    return life


class ReferenceDiffers(InternalError):
    """A run without faults does not give what plain Python computes from the same input."""

    def __init__(self, name: str, missing: Sequence[str], strange: Sequence[str]) -> None:
        self.missing, self.strange = missing, strange
        told = f"{len(missing)} rows are missing, such as {missing[:3]}; {len(strange)} should not be there, such as"
        super().__init__(f"the output of {name} without faults is not what plain Python computes: {told} {strange[:3]}")


def _sample(program: Program) -> tuple[str, int] | None:
    """The name of a sample program and how many times its input it reads; None for other programs."""
    inner, times = (program.program, program.times) if isinstance(program, Longer) else (program, 1)
    name = getattr(inner, "__name__", "")
    return (name, times) if inner.__module__.startswith("millstream.testing.") and name in expected.OUTPUTS else None


def reference(setup: Setup) -> list[str]:
    """What the program gives when nothing is cut and nothing goes wrong; for a sample program the same that plain
    Python computes."""
    with World() as world:
        whole = replace(setup, parallelism=1, epoch_records=100_000, block_records=65536, checkpoint_every=None)
        life = run(whole, world)
        if life.status is not JobStatus.FINISHED:
            raise life.failure or AssertionError(life)
        visible = world.visible()
    sample = _sample(setup.program)
    if sample is not None:
        found, plain = Counter(visible), Counter(expected.rows(*sample))
        if found != plain:
            raise ReferenceDiffers(sample[0], [*(plain - found).elements()], [*(found - plain).elements()])
    return visible


def live(setup: Setup, world: World, lives: Iterable[Faults] = (), *, most: int = 50) -> list[Life]:
    """Live after life until the job has finished or failed; after the last of `lives`, without faults."""
    ended: list[Life] = []
    planned = iter(lives)
    while len(ended) < most:
        ended.append(run(setup, world, next(planned, None)))
        if not ended[-1].crashed or ended[-1].finished:
            return ended
    raise Stuck


def point(setup: Setup, target: str, then: str | None = None) -> int:
    """The storage operation of a run without faults that makes the file whose path ends with `target`; with `then`, the
    first one after it at a path that has `then` in it."""
    with World() as world:
        done = list(enumerate(run(setup, world).operations))
    made = next(number for number, each in done if each.target.endswith(target))
    return made if then is None else next(number for number, each in done if number > made and then in each.path)


# ------------------------------------------------------------------------------------------------- random histories


def random_setup(seed: int, programs: Mapping[str, Program] = sample_programs.PROGRAMS) -> tuple[str, Setup]:
    """A program and a way to cut it."""
    chance = np.random.default_rng(seed)
    name = str(chance.choice(sorted(programs)))
    setup = Setup(
        programs[name],
        parallelism=int(chance.integers(1, 5)),
        epoch_records=int(chance.choice([1, 2, 5, 9, 30, 1000])),
        block_records=int(chance.choice([1, 2, 7, 65536])),
        checkpoint_every=int(chance.integers(1, 5)),
        backend=str(chance.choice(["hashmap", "lmdb"])),
        options={"execution.checkpointing.num-retained": str(chance.integers(1, 4))},
    )
    return name, setup


def random_faults(chance: Any) -> Faults:
    """What goes wrong in one life."""
    return Faults(
        storage=(int(chance.integers(0, 400)), CRASHES[int(chance.integers(0, 3))]) if chance.random() < 0.7 else None,
        engine=frozenset(map(int, chance.integers(0, 30, int(chance.integers(0, 3))))),
        forget=float(chance.choice([0.0, 0.1, 0.5])),
        flip=float(chance.choice([0.0, 0.5])),
        attempts=str(chance.choice(["once", "twice", "broken", "mixed"])),
        mixes=float(chance.choice([0.0, 0.02])),
        most_records=int(chance.integers(1, 20)) if chance.random() < 0.2 else None,
        seed=int(chance.integers(0, 1 << 30)),
    )


def history(seed: int) -> str | None:
    """One random history: several lives, each with faults and perhaps another parallelism. None when all was right."""
    name, setup = random_setup(seed)
    right = reference(setup)
    chance = np.random.default_rng([seed, 1])
    told = [name]
    with World() as world:
        for _ in range(int(chance.integers(1, 6))):
            life = run(setup, world, random_faults(chance))
            told.append(f"p={setup.parallelism}:{'crashed' if life.crashed else life.status}")
            if not life.crashed or life.finished:
                break
            setup = replace(setup, parallelism=int(chance.integers(1, 5)))
        else:
            life = live(setup, world)[-1]
        visible = world.visible()
        if (life.finished or life.status is JobStatus.FINISHED) and visible == right:
            return None
        missing = [row for row in right if row not in visible]
        return f"{' > '.join(told)}: {life.status} {life.failure}, {len(visible)} rows, missing {missing[:5]}"


def main(arguments: list[str] | None = None) -> int:
    """Live through many histories; prints the seeds that went wrong."""
    parser = argparse.ArgumentParser(prog="python -m millstream.testing.simulation", description=main.__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many histories")
    first = int(os.environ.get("MILLSTREAM_SEED", "0"))
    asked = parser.parse_args(arguments)
    logging.getLogger("millstream").setLevel(logging.ERROR)
    wrong = 0
    for seed in range(first, first + asked.seeds):
        problem = history(seed)
        if problem is not None:
            wrong += 1
            sys.stdout.write(f"MILLSTREAM_SEED={seed}: {problem}\n")
    sys.stdout.write(f"{asked.seeds} histories from seed {first}, {wrong} wrong\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
