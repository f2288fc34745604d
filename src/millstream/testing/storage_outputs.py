"""One job of the storage case with a real sink: files, Delta, Iceberg, PostgreSQL or Kafka.

Promises: `outcome` runs the job from its beginning with a fault at a storage operation, and a second one in the
recovery if there is one, then to its end, with an empty output. What the sink shows in the end
must be what plain Python computes: no row more, no row less.
Does not know: which faults there are to be. Faults are in the storage of checkpoints; the sink's own is a real one."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from millstream.job.job_status import JobStatus
from millstream.testing.chaos_sinks import Output
from millstream.testing.faults import Mode
from millstream.testing.sample_programs import PROGRAMS
from millstream.testing.simulation import Faults, Life, World, reference, run
from millstream.testing.storage_points import Script, setup_of

_LIVES = 5  # of a job without faults after the last one
_lives = itertools.count()  # a server knows the jobs of all steps


@dataclass(frozen=True)
class OutputFault:
    """A fault at an operation, given as the share of all operations of the job that come before it."""

    at: float
    mode: Mode
    lasting: int = 1


@dataclass(frozen=True)
class OutputOutcome:
    """What came of the faults of a step; `problem` is None when all held."""

    crashes: int
    restarts: int
    problem: str | None


class OutputJob:
    """A program with a checkpoint after every `every` epochs of so many records, which is rescaled twice."""

    def __init__(self, program: str, records: int, every: int, output: Output) -> None:
        plain = setup_of(program, records, every)
        self._output = output
        self._expected = reference(plain)
        self._setup = replace(plain, program=output.attached(PROGRAMS[program]))
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
        missing, more = _differences(self._expected, rows)
        return f"the output differs: {missing} rows are missing, {more} should not be there"


def _differences(expected: Sequence[str], rows: Sequence[str]) -> tuple[int, int]:
    wanted, found = Counter(expected), Counter(rows)
    return (wanted - found).total(), (found - wanted).total()
