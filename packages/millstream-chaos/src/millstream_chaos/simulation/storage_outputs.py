"""One job of the storage case with a real sink: files, Delta, Iceberg, PostgreSQL or Kafka.

Promises: `outcome` runs the job from its beginning to its end, with an empty output, a fault at a storage operation and
perhaps a second one in the recovery. The rows in the sink must be exactly those that plain Python computes.
Does not know: which faults are chosen. Faults are in the storage of checkpoints; the storage of the sink is real."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from millstream.job.job_status import JobStatus
from millstream_chaos.outputs.real_sinks import Output
from millstream_chaos.samples.programs import PROGRAMS
from millstream_chaos.simulation import Faults, Life, World, compute_reference, run
from millstream_chaos.simulation.storage_points import Script, create_setup
from millstream_chaos.storage.faulty_files import Mode

_LIVES = 5  # without faults, after the last life with one
_lives = itertools.count()  # a server keeps the output of earlier steps


@dataclass(frozen=True)
class OutputFault:
    """A fault at an operation, which is given as a share of all operations of the job."""

    at: float
    mode: Mode
    lasting: int = 1


@dataclass(frozen=True)
class OutputOutcome:
    """The outcome of a step; `problem` is None if all checks passed."""

    crashes: int
    restarts: int
    problem: str | None


class OutputJob:
    """A program that is rescaled twice, with epochs of `records` records and a checkpoint after each `every` epochs."""

    def __init__(self, program: str, records: int, every: int, output: Output) -> None:
        plain = create_setup(program, records, every)
        self._output = output
        self._expected = compute_reference(plain)
        self._setup = replace(plain, program=output.attach_to(PROGRAMS[program]))
        with World() as world:
            self._operations = len(run(plain, world, listen=Script.of("rescaled")).operations)

    def outcome(self, faults: Sequence[OutputFault]) -> OutputOutcome:
        """Run the job with these faults, one in each life."""
        self._output.empty()
        script = Script.of("rescaled")
        lives: list[Life] = []
        with World() as world:
            for fault in (*faults, *[None] * _LIVES):
                lives.append(self._live(world, script, fault))
                last = lives[-1]
                if last.finished or not last.crashed:
                    break
            crashes = sum(life.crashed for life in lives)
            restarts = sum(life.master.job.restarts for life in lives if life.master is not None)
            return OutputOutcome(crashes, restarts, self._problem(last, world.visible()))

    def _live(self, world: World, script: Script, fault: OutputFault | None) -> Life:
        setup = replace(self._setup, incarnation=f"{next(_lives)}")  # used if the job starts from the beginning
        if fault is None:
            return run(setup, world, listen=script)
        operation = int(fault.at * self._operations)
        faults = Faults(storage=(operation, fault.mode), lasting=fault.lasting, seed=operation)
        return run(setup, world, faults, listen=script)

    def _problem(self, last: Life, visible: list[str]) -> str | None:
        if not last.finished and last.status is not JobStatus.FINISHED:
            return f"{last.status} {last.failure}"
        rows = self._output.rows()
        if rows == visible == self._expected:
            return None
        missing, more = _count_differences(self._expected, rows)
        return f"the output differs: {missing} rows are missing, {more} are unexpected"


def _count_differences(expected: Sequence[str], rows: Sequence[str]) -> tuple[int, int]:
    wanted, actual = Counter(expected), Counter(rows)
    return (wanted - actual).total(), (actual - wanted).total()
