"""Every file of the newest checkpoint of a job is damaged in every way; then the job is started again.

Promises: damage is found before user code reads state. By default a job whose newest checkpoint is damaged fails, names
the file and commits nothing; if no output was committed with that checkpoint, it may instead finish with the right
output. If the job may use an older checkpoint, it finishes with output in which rows may be repeated and none is
missing, or fails because no checkpoint is intact. The job writes to a real sink, and to one in memory that refuses to
commit an epoch twice.
Does not know: what the files contain."""

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
from millstream_chaos.outputs.real_sinks import SINKS, Output
from millstream_chaos.samples.programs import PROGRAMS
from millstream_chaos.simulation import ROOT, Setup, World, compute_reference, run
from millstream_chaos.storage.faulty_files import SimulatedCrash
from millstream_chaos.storage.memory_files import MemoryFileSystem
from millstream_chaos.trace import Report, Trace

_SIZES = {
    "ci": (1, False),
    "normal": (5, True),
    "long": (len(PROGRAMS), True),
}  # the number of programs, and whether every file is damaged in every way
_FEW = 4  # the number of files that are damaged in the short version, in one way each; with a server, half as many
_SERVERS_EVERY = 8  # with a server, only one damage of this many is played, because the job is run again for each
_RECORDS = 15  # records between two checkpoints
ALLOWED = {"millstream.recovery.allow-older-checkpoint": "true"}
KEPT = 5  # the checkpoint after which the job dies


Damage = Callable[[bytes, bytes, int], bytes | None]


def _flip(data: bytes, _other: bytes, position: int) -> bytes:
    index = position % max(len(data), 1)
    return data[:index] + bytes([data[index] ^ (1 << position % 8)]) + data[index + 1 :]


DAMAGES: dict[str, Damage] = {  # functions of the file, another file, and a position that is drawn from the seed
    "flip": _flip,
    "truncate": lambda data, _other, position: data[: position % max(len(data), 1)],
    "delete": lambda _data, _other, _position: None,
    "zero": lambda data, _other, _position: b"\0" * len(data),
    "swap": lambda _data, other, _position: other,
}


def plan(seed: int, size: str) -> Trace:
    """Draw the programs, their sinks, the epochs between two checkpoints, and the position of the damage in a file."""
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
    """Damage one file at a time, and start the job with and without the option to use an older checkpoint."""
    report = Report(trace)
    outcomes: Counter[str] = Counter()
    with ExitStack() as servers:
        for name in dict.fromkeys(step["sink"] for step in trace.steps):
            servers.enter_context(SINKS[name].running())
        for number, step in enumerate(trace.iterate_steps()):
            job = DamagedJob(step["program"], step["every"], Output(step["sink"], directory / str(number)))
            for path, damage in _damages(job, step, everything=trace.parameters["everything"]):
                context = f"{step}: {damage} of {path}"
                arguments = path, damage, step["place"], context, report
                outcomes[f"by default: {job.start_by_default(*arguments)}"] += 1
                outcomes[f"older checkpoint allowed: {job.start_with_older_allowed(*arguments)}"] += 1
    report.figures |= dict(sorted(outcomes.items()))
    report.check(outcomes["by default: older checkpoint refused"] > 0, "an older checkpoint was never refused")
    report.check(outcomes["older checkpoint allowed: used"] > 0, "no job survived its damage")
    return report


def _damages(job: DamagedJob, step: Mapping[str, Any], *, everything: bool) -> list[tuple[str, str]]:
    """Return which files are damaged, and how."""
    if everything:
        chosen = [(path, damage) for path in job.targets for damage in DAMAGES]
        chosen = chosen if job.in_files else chosen[step["place"] % _SERVERS_EVERY :: _SERVERS_EVERY]
    else:
        targets = job.targets[: _FEW if job.in_files else _FEW // 2]
        ways = list(DAMAGES)
        chosen = [(path, ways[(index + step["place"]) % len(ways)]) for index, path in enumerate(targets)]
    return [
        (path, damage) for path, damage in chosen if job.damage(path, damage, step["place"]) != job.disk.files[path]
    ]


class DamagedJob:
    """A job that crashed after some checkpoints, with its disk and the files of its newest checkpoint (`targets`)."""

    def __init__(self, program: str, every: int, output: Output) -> None:
        self._output = output
        self._setup_without_sink = Setup(
            PROGRAMS[program], epoch_records=max(1, _RECORDS // every), checkpoint_every=every
        )
        self._expected = compute_reference(self._setup_without_sink)
        self._setup = replace(self._setup_without_sink, program=output.attach_to(PROGRAMS[program]))
        self._lives = 0
        self.in_files = output.sink.in_files
        self.disk = self._run_until_crash()
        self._before = output.rows()
        if self.in_files:
            output.save()
        self.targets = _targets(self.disk)

    def _run_until_crash(self) -> MemoryFileSystem:
        """Run the job until it crashes in an epoch after a checkpoint, and return its disk."""
        with World() as world:
            last = min(KEPT, len(run(self._setup_without_sink, world).checkpoints) - 1)
        checkpoint = 0

        def crash(event: JobEvent, _: JobMaster) -> None:
            nonlocal checkpoint
            if isinstance(event, EpochDone) and checkpoint >= last:
                raise SimulatedCrash
            if isinstance(event, CheckpointDone):
                checkpoint = event.id

        with World() as world:
            run(self._new_setup(), world, listen=crash)
            return world.disk

    def _new_setup(self, **changes: Any) -> Setup:
        """Return the job with a new incarnation, because a server keeps the output of earlier ones."""
        self._lives += 1
        return replace(self._setup, incarnation=f"{self._lives}", **changes)

    def damage(self, path: str, damage: str, position: int) -> bytes | None:
        """Return the bytes of a file after damage; None if it is deleted."""
        other = next(data for name, data in self.disk.files.items() if name != path and "/shared/" in name)
        return DAMAGES[damage](self.disk.files[path], other, position)

    def _prepare(self, world: World, path: str, damage: str, position: int) -> None:
        """Set a world to the disk with the damage.

        The output of a server cannot be restored, so the job is run again instead."""
        if self.in_files:
            self._output.restore_saved()
        else:
            self._output.empty()
            self.disk = self._run_until_crash()
        data = self.damage(path, damage, position)
        world.disk.files, world.disk.directories = dict(self.disk.files), set(self.disk.directories)
        if data is None:
            del world.disk.files[path]
        else:
            world.disk.files[path] = data

    def start_by_default(self, path: str, damage: str, position: int, context: str, report: Report) -> str:
        """Start the job with the default options."""
        with World() as world:
            self._prepare(world, path, damage, position)
            before = world.visible()
            life = run(self._new_setup(), world)
            if life.status is JobStatus.FINISHED:
                report.check(world.visible() == self._expected, f"{context}: the output differs")
                report.check(self._output.rows() == self._expected, f"{context}: the output of the sink differs")
                return "correct output without the file"
            report.check(path.removeprefix(f"{ROOT}/") in str(life.failure), f"{context}: not named in {life.failure}")
            return self._check_refusal(world, before, life.failure, not life.epochs, context, report)

    def start_with_older_allowed(self, path: str, damage: str, position: int, context: str, report: Report) -> str:
        """Start the job with the option to use an older checkpoint."""
        setup = self._new_setup(options={**self._setup.options, **ALLOWED}, repeats=True)
        with World() as world:
            self._prepare(world, path, damage, position)
            before = world.visible()
            life = run(setup, world)
            if life.status is JobStatus.FINISHED:
                report.check(world.visible() == self._expected, f"{context}: the output differs")
                rows = Counter(self._output.rows())
                wanted = Counter(self._expected)
                report.check(rows >= wanted, f"{context}: the sink lost {wanted - rows}")
                report.check(rows.keys() == wanted.keys(), f"{context}: the sink has other rows: {rows - wanted}")
                return "used"
            none_left = isinstance(life.failure, AllCheckpointsDamaged)
            report.check(none_left, f"{context}: {life.failure!r}")
            return self._check_refusal(world, before, life.failure, not life.epochs, context, report)

    def _check_refusal(
        self, world: World, before: list[str], failure: BaseException | None, unused: bool, context: str, report: Report
    ) -> str:
        report.check(unused and world.visible() == before, f"{context}: user code ran")
        report.check(self._output.rows() == self._before, f"{context}: the sink has committed more")
        if isinstance(failure, OlderCheckpointRefused):
            return "older checkpoint refused"
        report.check(isinstance(failure, AllCheckpointsDamaged), f"{context}: {failure!r}")
        return "no older checkpoint"


def _targets(disk: MemoryFileSystem) -> list[str]:
    """Return the files of the newest checkpoint: its metadata and the files that it names."""
    newest = max(path for path in disk.files if path.endswith("/_metadata"))
    data = disk.files[newest]
    metadata = CheckpointMetadata.from_bytes(data[: data.rindex(b"\nsha256 ")])
    return [newest, *sorted({f"{ROOT}/{handle.file}" for handle in metadata.handles})]
