"""Storage fails while a job runs: no space, I/O errors, read-only, stalls of half a minute, reads that fail and lie,
power losses, and processes that die.

Promises: at whatever operation of epochs, checkpoints, commits, rescales, savepoints and of the recovery that happens,
the output is in the end that of a run without faults, and no death leaves half a checkpoint. After reads that lied
longer than a job repeats them, the job may also end with an error that names the problem; started again, it comes to
the same output. Three jobs of a program are put through it: one that is rescaled twice, one that is also stopped with a
savepoint, the one that goes on from that. At every operation of them a process dies (before, after, half-way), and
storage fails in one way; where a death leaves something new to recover from, the recovery dies at every operation until
it has made a checkpoint. Power losses, reads that fail or lie, and three faults in a row are drawn; so are the faults
of jobs with a checkpoint after every 2 or 3 epochs, and of jobs with the file sink.
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

from millstream.testing.chaos import Report, Trace
from millstream.testing.chaos_sinks import SINKS as OUTPUTS
from millstream.testing.chaos_sinks import Output
from millstream.testing.faults import CRASHES, READ_MODES, Mode
from millstream.testing.power import POWER_LOSSES
from millstream.testing.sample_programs import PROGRAMS
from millstream.testing.simulation import World, run
from millstream.testing.storage_outputs import OutputFault, OutputJob
from millstream.testing.storage_points import Fault, Outcome, Points, Script, setup_of

__all__ = ["CI", "ERRORS", "JOBS", "Points", "Script", "plan", "play"]

T = TypeVar("T")

ERRORS: tuple[Mode, ...] = ("enospc", "eio", "erofs", "stall")
JOBS = ("rescaled", "stopped", "resumed")
CI = ("reminders", "side_output")  # keyed state, timers, windows, early and late output: every kind of file is touched
_READS = 60  # of a recovery: those until it has made a checkpoint, as a rule


class _Kind(NamedTuple):
    """A kind of job: after how many epochs there is a checkpoint, which sink it has, and which share of the faults of
    its jobs is played: of crashes and errors, and of the rest."""

    every: int
    sink: str
    share: float
    rest: float


class _Size(NamedTuple):
    """How much is played: programs (None: those of CI), the least epochs of a job, how many deaths have another one
    anywhere in the recovery, whether a job fails where one before it has too, and only what follows is another; and
    which kinds of jobs, and of those that are not of the first kind how many for each program."""

    programs: int | None
    epochs: int
    again: float
    repeated: bool
    kinds: tuple[_Kind, ...]
    others: int = 5
    outputs: int = 40  # jobs with faults for each real sink


def _kinds(others: float, rest: float) -> tuple[_Kind, ...]:
    return (
        _Kind(1, "visible", 1.0, rest),
        *(_Kind(every, "visible", others, others) for every in (2, 3)),
        *(_Kind(every, "files", others, others) for every in (1, 2, 3)),
    )


_SIZES = {
    "ci": _Size(None, 6, 0.0, False, _kinds(0.02, 0.02), 2, 3),
    "normal": _Size(6, 6, 0.25, False, _kinds(0.1, 0.25)),
    "long": _Size(len(PROGRAMS), 20, 0.5, True, _kinds(0.1, 0.25), outputs=200),
}


def plan(seed: int, size: str) -> Trace:
    """Which operations of which programs fail, how, and for how many operations."""
    programs, epochs, again, repeated, kinds, others, outputs = _SIZES[size]
    chance = np.random.default_rng([seed, 17])
    chosen = CI if programs is None else sorted(map(str, chance.choice(sorted(PROGRAMS), programs, replace=False)))
    records = {name: _epoch_records(name, epochs) for name in chosen}
    steps: list[Mapping[str, Any]] = []
    with World() as world:
        jobs = ((index, name, kind, job) for index, name in enumerate(chosen) for kind, job in product(kinds, JOBS))
        for index, name, kind, job in jobs:
            if kind != kinds[0] and (kinds.index(kind) - 1 - index * others) % (len(kinds) - 1) >= others:
                continue
            points = Points(name, job, records[name], world, every=kind.every, sink=kind.sink)
            begin = 0 if repeated or job != "stopped" else points.begun
            drawn = _Drawn(np.random.default_rng([seed, 17, len(steps)]), kind, again)
            steps += [
                {"program": name, "job": job, "every": kind.every, "sink": kind.sink, "faults": _json(faults)}
                for faults in drawn.faults(points, begin)
            ]
    steps += _output_steps(np.random.default_rng([seed, 17, 1]), chosen, outputs)
    return Trace("storage", seed, size, {"epoch records": records}, steps)


def _output_steps(chance: np.random.Generator, programs: Sequence[str], count: int) -> Iterator[Mapping[str, Any]]:
    """Faults of jobs with real sinks: one after another for each sink, for its server is there once."""
    modes: tuple[Mode, ...] = (*CRASHES, *CRASHES, *ERRORS, *POWER_LOSSES)
    for sink in OUTPUTS:
        for number in range(count):
            drawn = [OutputFault(float(chance.random()), modes[int(chance.integers(len(modes)))])]
            if chance.random() < 0.4:  # and in the recovery
                drawn.append(OutputFault(float(chance.random()) / 4, modes[int(chance.integers(len(CRASHES)))]))
            faults = [vars(fault) for fault in drawn]
            program = programs[int(chance.integers(len(programs)))]
            yield {"program": program, "every": 1 + number % 3, "output": sink, "faults": faults}


def _json(faults: Sequence[Fault]) -> list[dict[str, Any]]:
    return [fault.to_json() for fault in faults]


class _Drawn:
    """The faults of one job, drawn by chance."""

    def __init__(self, chance: np.random.Generator, kind: _Kind, again: float) -> None:
        self._chance, self._kind, self._again = chance, kind, again

    def faults(self, points: Points, begin: int) -> Iterator[list[Fault]]:
        """The faults of lives that follow one another, for each step."""
        operations = range(begin, len(points.history.operations))
        yield from self._first(operations)
        yield from self._of_reads(len(points.history.reads), [])
        for place in points.places:
            recovery = points.recovery(*place)
            if recovery is not None:
                yield from self._of_recovery(place, recovery.secured)
                yield from self._of_reads(min(len(recovery.reads), _READS), [Fault(*place)])
        yield from self._several(points)

    def _take(self, share: float) -> bool:
        return bool(share >= 1.0 or self._chance.random() < share)

    def _one_of(self, modes: Sequence[T]) -> T:
        return modes[int(self._chance.integers(len(modes)))]

    def _first(self, operations: range) -> Iterator[list[Fault]]:
        """At every operation: deaths, an error of one kind, and a loss of power of one kind."""
        first = int(self._chance.integers(len(ERRORS)))
        for number in operations:
            if self._take(self._kind.share):
                for mode in CRASHES:
                    dies = self._chance.random() < self._again
                    later = [Fault(int(self._chance.integers(0, 30)), mode)] if dies else []
                    yield [Fault(number, mode), *later]
                error = ERRORS[(first + number) % len(ERRORS)]
                yield [Fault(number, error, int(self._chance.integers(1, 8)) if error != "stall" else 1)]
            if self._take(self._kind.rest):
                yield [Fault(number, self._one_of(POWER_LOSSES))]

    def _of_recovery(self, place: tuple[int, Mode], operations: int) -> Iterator[list[Fault]]:
        """At every operation of a recovery until it has made a checkpoint."""
        for number in range(operations):
            if self._take(self._kind.share):
                yield from ([Fault(*place), Fault(number, mode)] for mode in CRASHES)
            if self._take(self._kind.rest):
                yield [Fault(*place), Fault(number, self._one_of(POWER_LOSSES))]

    def _of_reads(self, reads: int, before: list[Fault]) -> Iterator[list[Fault]]:
        """Reads that fail or lie, in one way each, once or several times."""
        for number in range(reads):
            if self._take(self._kind.rest):
                lasting, behind = int(self._chance.integers(1, 5)), int(self._chance.integers(1, 20))
                lie = Fault(read=number, read_mode=self._one_of(READ_MODES), reads=lasting, behind=behind)
                yield [*before, lie]

    def _several(self, points: Points) -> Iterator[list[Fault]]:
        """Three faults: in the job, in its recovery, and in the recovery of that; some of them with reads that lie."""
        operations = len(points.history.operations)
        for _ in range(round(operations * self._kind.rest / 4)):
            faults = []
            for number in range(3):
                at = int(self._chance.integers(operations if number == 0 else 40))
                fault = Fault(at, self._one_of((*CRASHES, *POWER_LOSSES, *ERRORS[:2])), lasting=1 + number)
                if self._chance.random() < 0.5:
                    lie = self._one_of(READ_MODES)
                    fault = replace(fault, read=int(self._chance.integers(40)), read_mode=lie, behind=1 + number)
                faults.append(fault)
            yield faults


def _epoch_records(program: str, epochs: int) -> int:
    """The largest epochs with which a program has so many of them."""
    for records in (60, 40, 30, 20, 15, 10, 8, 7, 6, 5, 4, 3, 2):
        with World() as world:
            if len(run(setup_of(program, records), world).epochs) >= epochs:
                return records
    return 1


@contextmanager
def _little_garbage() -> Iterator[None]:
    """What is loaded by now stays: looking through it for cycles took a tenth of the time."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def play(trace: Trace, directory: Path) -> Report:
    """One fault at a time, each in the world of a job that begins."""
    report = Report(trace)
    outcomes: list[Outcome] = []
    points: dict[tuple[str, str, int, str], Points] = {}
    with World() as world, _little_garbage(), _Outputs(directory, trace.parameters["epoch records"]) as outputs:
        for step in trace.shown():
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
            report.check(not outcome.damaged, f"{step}: half a checkpoint is left: {outcome.damaged}")
            report.check(outcome.right, f"{step}: the output differs")
            lied = f"{step}: the job failed, although reads lied for a moment only: {outcome.needless}"
            report.check(outcome.needless is None, lied)
            outcomes.append(outcome)
    report.figures |= {
        "faults": len(outcomes),
        "restarts": sum(each.restarts for each in outcomes),
        "crashes": sum(each.crashes for each in outcomes),
        "resumed from a savepoint": sum(each.resumed for each in outcomes),
        "failed and started again": sum(each.started_again for each in outcomes),
        **outputs.figures(),
    }
    return report


class _Outputs(ExitStack):
    """The jobs with real sinks, whose servers run from the first step that needs one to the end."""

    def __init__(self, directory: Path, records: Mapping[str, int]) -> None:
        super().__init__()
        self._directory, self._records = directory, records
        self._running: set[str] = set()
        self._played: Counter[str] = Counter()
        self._number = 0

    def play(self, step: Mapping[str, Any], report: Report) -> None:
        """One step."""
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
        """How many jobs of each sink, and what happened to them."""
        return {f"with real sinks: {name}": count for name, count in self._played.items()}
