"""Every file of a job's newest checkpoint is damaged in every way; then the job is started again.

Promises: damage is noticed before user code sees state. By default a job whose newest checkpoint is damaged says which
file it is and shows nothing more, or, if no output was committed with that checkpoint, goes on to exactly the right
output. If it may go back, it goes on to output in which rows may be repeated and none is missing, or says that no
checkpoint is intact. A real sink and one in memory that refuses to show an epoch twice are written at the same time.
Does not know: what the files mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from millstream.checkpoint.metadata import CheckpointMetadata
from millstream.cluster.checkpoint_lookup import AllCheckpointsDamaged, OlderCheckpointRefused
from millstream.cluster.job_events import CheckpointDone, EpochDone, JobEvent
from millstream.cluster.job_master import JobMaster
from millstream.job.job_status import JobStatus
from millstream.testing.chaos import Report, Trace
from millstream.testing.chaos_sinks import SINKS, Output
from millstream.testing.faults import SimulatedCrash
from millstream.testing.memory_files import MemoryFileSystem
from millstream.testing.sample_programs import PROGRAMS
from millstream.testing.simulation import ROOT, Setup, World, reference, run

_SIZES = {"ci": (1, False), "normal": (5, True), "long": (len(PROGRAMS), True)}  # programs; every damage to every file
_FEW = 4  # files that are damaged in the short version, one way each; with a server, half of them
_SERVERS_EVERY = 8  # with a server, one damage in so many of the long version: the job is run again for each
_RECORDS = 15  # between two checkpoints
ALLOWED = {"millstream.recovery.allow-older-checkpoint": "true"}
KEPT = 5  # the checkpoint after which the job dies


Damage = Callable[[bytes, bytes, int], bytes | None]


def _flip(data: bytes, _other: bytes, place: int) -> bytes:
    at = place % max(len(data), 1)
    return data[:at] + bytes([data[at] ^ (1 << place % 8)]) + data[at + 1 :]


DAMAGES: dict[str, Damage] = {  # of a file's bytes, those of another file, and a place drawn from the seed
    "flip": _flip,
    "truncate": lambda data, _other, place: data[: place % max(len(data), 1)],
    "delete": lambda _data, _other, _place: None,
    "zero": lambda data, _other, _place: b"\0" * len(data),
    "swap": lambda _data, other, _place: other,
}


def plan(seed: int, size: str) -> Trace:
    """Which programs with which sinks, how many epochs a checkpoint has, and where in a file it is damaged."""
    programs, everything = _SIZES[size]
    chance = np.random.default_rng([seed, 13])
    names = sorted(map(str, chance.choice(sorted(PROGRAMS), programs, replace=False)))
    steps = [
        {"program": name, "every": 1 + (number + more) % 3, "sink": sink, "place": int(chance.integers(0, 1 << 30))}
        for name in names
        for more in range(3 if everything else 1)
        for number, sink in enumerate(SINKS)
    ]
    return Trace("damage", seed, size, {"everything": everything}, steps)


def play(trace: Trace, directory: Path) -> Report:
    """Damage one file at a time."""
    report = Report(trace)
    outcomes: Counter[str] = Counter()
    with ExitStack() as servers:
        for name in dict.fromkeys(step["sink"] for step in trace.steps):
            servers.enter_context(SINKS[name].running())
        for number, step in enumerate(trace.shown()):
            job = DamagedJob(step["program"], step["every"], Output(step["sink"], directory / str(number)))
            for path, damage in _damages(job, step, everything=trace.parameters["everything"]):
                told = f"{step}: {damage} of {path}"
                outcomes[f"by default: {job.refuse(path, damage, step['place'], told, report)}"] += 1
                outcomes[f"going back allowed: {job.go_back(path, damage, step['place'], told, report)}"] += 1
    report.figures |= dict(sorted(outcomes.items()))
    report.check(outcomes["by default: refused to go back"] > 0, "going back was never refused")
    report.check(outcomes["going back allowed: went back"] > 0, "no damage was survived")
    return report


def _damages(job: DamagedJob, step: Mapping[str, Any], *, everything: bool) -> list[tuple[str, str]]:
    """Which files are damaged, and how."""
    if everything:
        chosen = [(path, damage) for path in job.targets for damage in DAMAGES]
        chosen = chosen if job.in_files else chosen[step["place"] % _SERVERS_EVERY :: _SERVERS_EVERY]
    else:
        targets = job.targets[: _FEW if job.in_files else _FEW // 2]
        ways = list(DAMAGES)
        chosen = [(path, ways[(index + step["place"]) % len(ways)]) for index, path in enumerate(targets)]
    return [each for each in chosen if job.damaged(*each, step["place"]) != job.disk.files[each[0]]]


class DamagedJob:
    """A job that died after some checkpoints. `disk` is what it left, `targets` the files of its newest checkpoint."""

    def __init__(self, program: str, every: int, output: Output) -> None:
        self._output = output
        self._plain = Setup(PROGRAMS[program], epoch_records=max(1, _RECORDS // every), checkpoint_every=every)
        self._expected = reference(self._plain)
        self._setup = replace(self._plain, program=output.attached(PROGRAMS[program]))
        self._lives = 0
        self.in_files = output.sink.in_files
        self.disk = self._stopped()
        self._before = output.rows()
        if self.in_files:
            output.save()
        self.targets = _targets(self.disk)

    def _stopped(self) -> MemoryFileSystem:
        """The disk of the job, which dies in the middle of what follows a checkpoint."""
        with World() as world:
            last = min(KEPT, len(run(self._plain, world).checkpoints) - 1)
        made = 0

        def die(observation: JobEvent, _: JobMaster) -> None:
            nonlocal made
            if isinstance(observation, EpochDone) and made >= last:
                raise SimulatedCrash
            if isinstance(observation, CheckpointDone):
                made = observation.id

        with World() as world:
            run(self._new_setup(), world, listen=die)
            return world.disk

    def _new_setup(self, **changes: Any) -> Setup:
        """The job with an unused incarnation in case it starts from the beginning: a server remembers earlier ones."""
        self._lives += 1
        return replace(self._setup, incarnation=f"{self._lives}", **changes)

    def damaged(self, path: str, damage: str, place: int) -> bytes | None:
        """The bytes of a file after damage, None if it is gone."""
        other = next(data for name, data in self.disk.files.items() if name != path and "/shared/" in name)
        return DAMAGES[damage](self.disk.files[path], other, place)

    def _world(self, world: World, path: str, damage: str, place: int) -> None:
        """The world after the damage. The output of a server cannot be put back: the job is run again instead."""
        if self.in_files:
            self._output.put_back()
        else:
            self._output.empty()
            self.disk = self._stopped()
        data = self.damaged(path, damage, place)
        world.disk.files, world.disk.directories = dict(self.disk.files), set(self.disk.directories)
        if data is None:
            del world.disk.files[path]
        else:
            world.disk.files[path] = data

    def refuse(self, path: str, damage: str, place: int, told: str, report: Report) -> str:
        """Start the job as it is by default."""
        with World() as world:
            self._world(world, path, damage, place)
            before = world.visible()
            life = run(self._new_setup(), world)
            if life.status is JobStatus.FINISHED:
                report.check(world.visible() == self._expected, f"{told}: the output differs")
                report.check(self._output.rows() == self._expected, f"{told}: the output of the sink differs")
                return "right without it"
            report.check(path.removeprefix(f"{ROOT}/") in str(life.failure), f"{told}: not named in {life.failure}")
            return self._refused(world, before, life.failure, not life.epochs, told, report)

    def go_back(self, path: str, damage: str, place: int, told: str, report: Report) -> str:
        """Start the job with the option to go back."""
        setup = self._new_setup(options={**self._setup.options, **ALLOWED}, repeats=True)
        with World() as world:
            self._world(world, path, damage, place)
            before = world.visible()
            life = run(setup, world)
            if life.status is JobStatus.FINISHED:
                report.check(world.visible() == self._expected, f"{told}: the output differs")
                rows = Counter(self._output.rows())
                wanted = Counter(self._expected)
                report.check(rows >= wanted, f"{told}: the sink lost {wanted - rows}")
                report.check(rows.keys() == wanted.keys(), f"{told}: the sink has other rows: {rows - wanted}")
                return "went back"
            none_left = isinstance(life.failure, AllCheckpointsDamaged)
            report.check(none_left, f"{told}: {life.failure!r}")
            return self._refused(world, before, life.failure, not life.epochs, told, report)

    def _refused(
        self, world: World, before: list[str], failure: BaseException | None, unused: bool, told: str, report: Report
    ) -> str:
        report.check(unused and world.visible() == before, f"{told}: user code ran")
        report.check(self._output.rows() == self._before, f"{told}: the sink has shown more")
        if isinstance(failure, OlderCheckpointRefused):
            return "refused to go back"
        report.check(isinstance(failure, AllCheckpointsDamaged), f"{told}: {failure!r}")
        return "nothing to go back to"


def _targets(disk: MemoryFileSystem) -> list[str]:
    """The files of the newest checkpoint: its metadata and all it names."""
    newest = max(path for path in disk.files if path.endswith("/_metadata"))
    data = disk.files[newest]
    metadata = CheckpointMetadata.from_bytes(data[: data.rindex(b"\nsha256 ")])
    return [newest, *sorted({f"{ROOT}/{handle.file}" for handle in metadata.handles})]
