"""Two drivers for one job: the first stops for a while at every storage operation it does, and the second takes over.

Promises: at whatever operation the old leader wakes up again, it makes no checkpoint that counts and shows nothing; the
output of both together is that of a run without faults.
Does not know: processes; `tests/cluster_real` stops real ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from millstream.cluster.leadership import Leadership
from millstream.cluster.lease import FileLease
from millstream.model.job_status import JobStatus
from millstream.testing.chaos import Report, Trace
from millstream.testing.sample_programs import PROGRAMS
from millstream.testing.simulation import Faults, Life, Setup, World, reference, run

_SIZES = {"ci": (2, 25), "normal": (6, None), "long": (17, None)}  # programs, operations of each (None: all)
DURATION = 10.0


def plan(seed: int, size: str) -> Trace:
    """At which operations of which programs the leader is stopped."""
    programs, most = _SIZES[size]
    chance = np.random.default_rng([seed, 5])
    chosen = sorted(map(str, chance.choice(sorted(PROGRAMS), programs, replace=False)))
    steps = []
    for name in chosen:
        setup = _setup(name)
        with World() as world:
            count = len(run(setup, world, leadership=leadership(world, "first")).operations)
        at = range(count) if most is None else sorted(map(int, chance.choice(count, min(most, count), replace=False)))
        steps += [
            {
                "program": name,
                "operation": number,
                "keep": 1 + number % 3,
                "dies_after": int(chance.integers(0, 80)) if chance.random() < 0.6 else None,
            }
            for number in at
        ]
    return Trace("leaders", seed, size, {}, steps)


def leadership(world: World, holder: str) -> Leadership:
    """A driver's part in the leadership of the job of a world, on its clock."""
    lease = FileLease("/leases/job", world.files)
    return Leadership(lease, holder, DURATION, world.clock.precise, world.clock.sleep, renews_itself=False)


def _setup(program: str) -> Setup:
    return Setup(PROGRAMS[program], epoch_records=10, checkpoint_every=2)


def play(trace: Trace, _directory: Path) -> Report:
    """Stop, take over, wake up; step by step."""
    report = Report(trace)
    expected = {name: reference(_setup(name)) for name in {step["program"] for step in trace.steps}}
    ended: dict[str, int] = {}
    for step in trace.shown():
        setup = replace(_setup(step["program"]), options={"execution.checkpointing.num-retained": str(step["keep"])})
        with World() as world:
            lives = zombie(setup, world, step["operation"], step["dies_after"])
            how = " > ".join("crashed" if life.crashed else str(life.status and life.status.name) for life in lives)
            ended[how] = ended.get(how, 0) + 1
            told = f"{step}: {how}, {[str(life.failure) for life in lives if life.failure]}"
            report.check(world.visible() == expected[step["program"]], f"{told}: the output differs")
            finished = any(life.finished or life.status is JobStatus.FINISHED for life in lives)
            report.check(finished, f"{told}: nobody finished")
    report.figures |= {"pauses": len(trace.steps), **{f"ended {how}": count for how, count in sorted(ended.items())}}
    return report


def zombie(setup: Setup, world: World, operation: int, dies_after: int | None) -> list[Life]:
    """A leader is stopped before one of its operations. Another one leads, to the end of the job or until it dies; then
    the first wakes up, and when it is done a third one leads to the end."""
    lives: list[Life] = []

    def meanwhile(number: int) -> None:
        if number == operation and not lives:
            lives.append(Life())
            faults = Faults(storage=None if dies_after is None else (dies_after, "after"))
            lives[0] = run(setup, world, faults, leadership=leadership(world, "second"))

    lives.append(run(setup, world, leadership=leadership(world, "first"), meanwhile=meanwhile))
    if not any(life.status is JobStatus.FINISHED for life in lives):
        lives.append(run(setup, world, leadership=leadership(world, "third")))
    return lives
