"""Several drivers for one job: the first stops for a while at every storage operation it does, and the second takes
over; in some cases that one stops too, and a third takes over before they wake up, the last one first.

Promises: at whatever operation an old leader wakes up again, it makes no checkpoint that counts and shows nothing; the
output of all together is that of a run without faults.
Does not know: processes; `tests/cluster_real` stops real ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from millstream.cluster.leadership import Leadership
from millstream.cluster.lease import FileLease
from millstream.job.job_status import JobStatus
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
                "second": int(chance.integers(0, 80)) if chance.random() < 0.4 else None,
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
            stops = [each for each in (step["operation"], step.get("second")) if each is not None]
            lives = zombies(setup, world, stops, step["dies_after"])
            how = " > ".join("crashed" if life.crashed else str(life.status and life.status.name) for life in lives)
            ended[how] = ended.get(how, 0) + 1
            told = f"{step}: {how}, {[str(life.failure) for life in lives if life.failure]}"
            report.check(world.visible() == expected[step["program"]], f"{told}: the output differs")
            finished = any(life.finished or life.status is JobStatus.FINISHED for life in lives)
            report.check(finished, f"{told}: nobody finished")
    report.figures |= {"pauses": len(trace.steps), **{f"ended {how}": count for how, count in sorted(ended.items())}}
    return report


def zombies(setup: Setup, world: World, stops: Sequence[int], dies_after: int | None) -> list[Life]:
    """A leader is stopped before one of its operations, and another one leads; that one may be stopped, too. The last
    one leads to the end of the job or until it dies. Then those that were stopped wake up, the last one first; when all
    are done, another one leads to the end."""
    lives: list[Life] = []
    started = 0

    def lead() -> None:
        nonlocal started
        own, started = started, started + 1

        def meanwhile(number: int) -> None:
            if own < len(stops) and number == stops[own] and started == own + 1:
                lead()

        faults = Faults(storage=(dies_after, "after") if own == len(stops) and dies_after is not None else None)
        life = run(setup, world, faults, leadership=leadership(world, f"driver-{own}"), meanwhile=meanwhile)
        lives.append(life)

    lead()
    while not any(life.finished or life.status is JobStatus.FINISHED for life in lives) and started < 5:
        lead()
    return lives
