"""Storage fails while a job runs: no space, I/O errors, read-only, stalls of half a minute, reads that fail or return
wrong data, power losses, and crashes.

Promises: at whichever operation of epochs, checkpoints, commits, rescales, savepoints and recovery a fault happens, the
final output is that of a run without faults, and no crash leaves an incomplete checkpoint. If reads fail more often
than a job repeats them, the job may also fail with an error that names the problem; started again, it has the same
output.

Each program has three jobs: one that is rescaled twice, one that is also stopped with a savepoint, and one that
continues from the savepoint. At every operation of them (in the size `ci`, at the first of each shape and at one in
twenty of the others) the process crashes (before, after, half-way), and storage fails in one way. After each crash that
leaves another type of state, the recovery crashes at every operation until its first checkpoint. Power losses, failing
reads, and three faults in a row are drawn, and so are the faults of jobs with a checkpoint after every 2 or 3 epochs,
and of jobs with the file sink.
Does not know: what the operations are for."""

from __future__ import annotations

import gc
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from millstream_chaos.outputs.real_sinks import SINKS as OUTPUTS
from millstream_chaos.outputs.real_sinks import Output
from millstream_chaos.samples.programs import PROGRAMS
from millstream_chaos.simulation import World, run
from millstream_chaos.simulation.crash_states import operation_shape
from millstream_chaos.simulation.storage_outputs import OutputFault, OutputJob
from millstream_chaos.simulation.storage_points import Fault, Outcome, Points, Script, create_setup
from millstream_chaos.storage.faulty_files import CRASHES, READ_MODES, Mode, Operation
from millstream_chaos.storage.power import POWER_LOSSES
from millstream_chaos.trace import Report, Trace

__all__ = ["CI", "ERRORS", "JOBS", "Points", "Script", "plan", "play"]

T = TypeVar("T")

ERRORS: tuple[Mode, ...] = ("enospc", "eio", "erofs", "stall")
JOBS = ("rescaled", "stopped", "resumed")
CI = ("reminders", "side_output")  # with keyed state, timers and windows, so that every type of file is written
_READS = 60  # operations of a recovery: usually those until its first checkpoint


class _JobType(NamedTuple):
    """A type of job: the epochs between two checkpoints, its sink, and the shares of faults that are played: of crashes
    and errors (`share`), and of all others (`rest`)."""

    every: int
    sink: str
    share: float
    rest: float


class _Size(NamedTuple):
    """How much is played.

    Attributes:
        programs: The number of programs; None for those of CI.
        epochs: The least number of epochs of a job.
        again: The share of crashes that are followed by a crash anywhere in the recovery.
        repeated: Whether a job also fails where it does not differ from the job before it.
        job_types: The types of jobs.
        others: The number of job types for each program, beside the first type.
        outputs: The number of jobs with faults for each real sink.

    """

    programs: int | None
    epochs: int
    again: float
    repeated: bool
    job_types: tuple[_JobType, ...]
    others: int = 5
    outputs: int = 40


def _job_types(others: float, rest: float, first: float = 1.0) -> tuple[_JobType, ...]:
    return (
        _JobType(1, "visible", first, rest),
        # In CI each program has one of these, so the first two have both sinks and both intervals.
        *(_JobType(every, sink, others, others) for every, sink in ((2, "files"), (3, "visible"))),
        *(_JobType(every, sink, others, others) for every, sink in ((1, "files"), (2, "visible"), (3, "files"))),
    )


_SIZES = {
    "ci": _Size(None, 6, 0.0, False, _job_types(0.02, 0.02, first=0.05), 1, 3),
    "normal": _Size(6, 6, 0.25, False, _job_types(0.1, 0.25)),
    "long": _Size(len(PROGRAMS), 20, 0.5, True, _job_types(0.1, 0.25), outputs=200),
}


def plan(seed: int, size: str) -> Trace:
    """Draw which operations of which programs fail, how, and for how many operations."""
    programs, epochs, again, repeated, job_types, others, outputs = _SIZES[size]
    chance = np.random.default_rng([seed, 17])
    chosen = CI if programs is None else sorted(map(str, chance.choice(sorted(PROGRAMS), programs, replace=False)))
    records = {name: _epoch_records(name, epochs) for name in chosen}
    steps: list[Mapping[str, Any]] = []
    with World() as world:
        jobs = (
            (index, name, job_type, job)
            for index, name in enumerate(chosen)
            for job_type, job in product(job_types, JOBS)
        )
        for index, name, job_type, job in jobs:
            turn = job_types.index(job_type) - 1 - index * others
            if job_type != job_types[0] and turn % (len(job_types) - 1) >= others:
                continue
            points = Points(name, job, records[name], world, every=job_type.every, sink=job_type.sink)
            begin = 0 if repeated or job != "stopped" else points.first_operation
            drawer = _FaultDrawer(np.random.default_rng([seed, 17, len(steps)]), job_type, again)
            steps += [
                {"program": name, "job": job, "every": job_type.every, "sink": job_type.sink, "faults": _json(faults)}
                for faults in drawer.draw(points, begin)
            ]
    steps += _output_steps(np.random.default_rng([seed, 17, 1]), chosen, outputs)
    return Trace("storage", seed, size, {"epoch records": records}, steps)


def _output_steps(chance: np.random.Generator, programs: Sequence[str], count: int) -> Iterator[Mapping[str, Any]]:
    """Draw faults of jobs with real sinks, sink by sink, because each server is started once."""
    modes: tuple[Mode, ...] = (*CRASHES, *CRASHES, *ERRORS, *POWER_LOSSES)
    for sink in OUTPUTS:
        for number in range(count):
            drawn = [OutputFault(float(chance.random()), modes[int(chance.integers(len(modes)))])]
            if chance.random() < 0.4:  # and a second fault in the recovery
                drawn.append(OutputFault(float(chance.random()) / 4, modes[int(chance.integers(len(CRASHES)))]))
            faults = [vars(fault) for fault in drawn]
            program = programs[int(chance.integers(len(programs)))]
            yield {"program": program, "every": 1 + number % 3, "output": sink, "faults": faults}


def _json(faults: Sequence[Fault]) -> list[dict[str, Any]]:
    return [fault.to_json() for fault in faults]


class _FaultDrawer:
    """Draws the faults of one job."""

    def __init__(self, chance: np.random.Generator, job_type: _JobType, again: float) -> None:
        self._chance, self._job_type, self._again = chance, job_type, again

    def draw(self, points: Points, begin: int) -> Iterator[list[Fault]]:
        """Yield the faults of each step, one for each life."""
        yield from self._draw_first(points.history.operations, begin)
        yield from self._draw_reads(len(points.history.reads), [])
        for place in points.crash_points:
            recovery = points.recovery(*place)
            if recovery is not None:
                yield from self._draw_recovery(place, recovery.secured)
                yield from self._draw_reads(min(len(recovery.reads), _READS), [Fault(*place)])
        yield from self._draw_series(points)

    def _take(self, share: float) -> bool:
        return bool(share >= 1.0 or self._chance.random() < share)

    def _one_of(self, modes: Sequence[T]) -> T:
        return modes[int(self._chance.integers(len(modes)))]

    def _draw_first(self, operations: Sequence[Operation], begin: int) -> Iterator[list[Fault]]:
        """Yield for operations from `begin` on the crashes, one error, and one loss of power.

        If the crashes of only a share of the operations are played, the first operation of each shape is among them."""
        first = int(self._chance.integers(len(ERRORS)))
        shapes: set[tuple[str, str]] = set()
        for number in range(begin, len(operations)):
            shape = operation_shape(operations[number])
            if self._take(self._job_type.share) or shape not in shapes:
                for mode in CRASHES:
                    crashes_again = self._chance.random() < self._again
                    later = [Fault(int(self._chance.integers(0, 30)), mode)] if crashes_again else []
                    yield [Fault(number, mode), *later]
                error = ERRORS[(first + number) % len(ERRORS)]
                yield [Fault(number, error, int(self._chance.integers(1, 8)) if error != "stall" else 1)]
                shapes.add(shape)
            if self._take(self._job_type.rest):
                yield [Fault(number, self._one_of(POWER_LOSSES))]

    def _draw_recovery(self, place: tuple[int, Mode], operations: int) -> Iterator[list[Fault]]:
        """Yield crashes and losses of power for every operation of a recovery until its first checkpoint."""
        for number in range(operations):
            if self._take(self._job_type.share):
                yield from ([Fault(*place), Fault(number, mode)] for mode in CRASHES)
            if self._take(self._job_type.rest):
                yield [Fault(*place), Fault(number, self._one_of(POWER_LOSSES))]

    def _draw_reads(self, reads: int, before: list[Fault]) -> Iterator[list[Fault]]:
        """Yield reads that fail or return wrong data, in one way each, once or several times."""
        for number in range(reads):
            if self._take(self._job_type.rest):
                lasting, behind = int(self._chance.integers(1, 5)), int(self._chance.integers(1, 20))
                failing_read = Fault(read=number, read_mode=self._one_of(READ_MODES), reads=lasting, behind=behind)
                yield [*before, failing_read]

    def _draw_series(self, points: Points) -> Iterator[list[Fault]]:
        """Yield three faults in a row: in the job, in its recovery, and in the recovery after that."""
        operations = len(points.history.operations)
        for _ in range(round(operations * self._job_type.rest / 4)):
            faults = []
            for number in range(3):
                at = int(self._chance.integers(operations if number == 0 else 40))
                fault = Fault(at, self._one_of((*CRASHES, *POWER_LOSSES, *ERRORS[:2])), lasting=1 + number)
                if self._chance.random() < 0.5:
                    read_mode = self._one_of(READ_MODES)
                    fault = replace(fault, read=int(self._chance.integers(40)), read_mode=read_mode, behind=1 + number)
                faults.append(fault)
            yield faults


def _epoch_records(program: str, epochs: int) -> int:
    """Return the largest number of records in an epoch with which a program has at least `epochs` epochs."""
    for records in (60, 40, 30, 20, 15, 10, 8, 7, 6, 5, 4, 3, 2):
        with World() as world:
            if len(run(create_setup(program, records), world).epochs) >= epochs:
                return records
    return 1


@contextmanager
def _freeze_garbage() -> Iterator[None]:
    """Exclude the objects that exist now from garbage collection, which took a tenth of the time."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def play(trace: Trace, directory: Path) -> Report:
    """Play one step at a time, each in a new world."""
    report = Report(trace)
    outcomes: list[Outcome] = []
    points: dict[tuple[str, str, int, str], Points] = {}
    with World() as world, _freeze_garbage(), _Outputs(directory, trace.parameters["epoch records"]) as outputs:
        for step in trace.iterate_steps():
            if "output" in step:
                outputs.play(step, report)
                continue
            key = step["program"], step["job"], step.get("every", 1), step.get("sink", "visible")
            if key not in points:
                program, job, every, sink = key
                records = trace.parameters["epoch records"][program]
                points = {key: Points(program, job, records, world, every=every, sink=sink)}
            outcome = points[key].outcome(step)
            report.check(outcome.failure is None, f"{step}: {outcome.failure}")
            report.check(not outcome.damaged, f"{step}: an incomplete checkpoint is left: {outcome.damaged}")
            report.check(outcome.right, f"{step}: the output differs")
            needless = f"{step}: the job failed although only few reads failed: {outcome.needless}"
            report.check(outcome.needless is None, needless)
            outcomes.append(outcome)
    report.figures |= {
        "faults": len(outcomes),
        "restarts": sum(outcome.restarts for outcome in outcomes),
        "crashes": sum(outcome.crashes for outcome in outcomes),
        "resumed from a savepoint": sum(outcome.resumed for outcome in outcomes),
        "failed and started again": sum(outcome.started_again for outcome in outcomes),
        **outputs.figures(),
    }
    return report


class _Outputs(ExitStack):
    """Plays the jobs with real sinks; a server runs from the first step that needs it to the end."""

    def __init__(self, directory: Path, records: Mapping[str, int]) -> None:
        super().__init__()
        self._directory, self._records = directory, records
        self._running: set[str] = set()
        self._played: Counter[str] = Counter()
        self._number = 0

    def play(self, step: Mapping[str, Any], report: Report) -> None:
        """Play one step."""
        sink = step["output"]
        if sink not in self._running:
            self.enter_context(OUTPUTS[sink].running())
            self._running.add(sink)
        self._number += 1
        root = self._directory / str(self._number)
        job = OutputJob(step["program"], self._records[step["program"]], step["every"], Output(sink, root))
        outcome = job.outcome([OutputFault(**fault) for fault in step["faults"]])
        report.check(outcome.problem is None, f"{step}: {outcome.problem}")
        self._played.update({sink: 1, "crashes": outcome.crashes, "restarts": outcome.restarts})
        shutil.rmtree(root, ignore_errors=True)

    def figures(self) -> dict[str, int]:
        """Return the numbers of jobs of each sink, crashes and restarts."""
        return {f"with real sinks: {name}": count for name, count in self._played.items()}
