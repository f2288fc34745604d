"""Several drivers for one job: the first is stopped before one of its storage operations, and the second takes over.

In some cases the second is stopped too, and a third takes over. Then the stopped drivers continue, the last one first.

Promises: an old leader that continues at any operation publishes no checkpoint and commits no output; the output of all
drivers together is that of a run without faults.
Does not know: processes; `tests/cluster_real` stops real ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from millstream.cluster.leadership import Leadership
from millstream.cluster.lease import FileLease
from millstream.job.job_status import JobStatus
from millstream_chaos.samples.programs import PROGRAMS
from millstream_chaos.simulation import Faults, Life, Setup, World, compute_reference, run
from millstream_chaos.trace import Report, Trace

# the number of programs, and of operations of each (None: all)
_SIZES = {"ci": (2, 25), "normal": (6, None), "long": (17, None)}
DURATION = 10.0


def plan(seed: int, size: str) -> Trace:
    """Draw the programs and the operations before which the leader is stopped."""
    programs, most = _SIZES[size]
    chance = np.random.default_rng([seed, 5])
    chosen = sorted(map(str, chance.choice(sorted(PROGRAMS), programs, replace=False)))
    steps = []
    for name in chosen:
        setup = _setup(name)
        with World() as world:
            count = len(run(setup, world, leadership=create_leadership(world, "first")).operations)
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


def create_leadership(world: World, holder: str) -> Leadership:
    """Create the leadership of a driver, with the files and the clock of a world."""
    lease = FileLease("/leases/job", world.files)
    return Leadership(lease, holder, DURATION, world.clock.precise, world.clock.sleep, renews_itself=False)


def _setup(program: str) -> Setup:
    return Setup(PROGRAMS[program], epoch_records=10, checkpoint_every=2)


def play(trace: Trace, _directory: Path) -> Report:
    """Run each step with its stopped leaders, and compare the output."""
    report = Report(trace)
    expected = {name: compute_reference(_setup(name)) for name in {step["program"] for step in trace.steps}}
    ended: dict[str, int] = {}
    for step in trace.iterate_steps():
        setup = replace(_setup(step["program"]), options={"execution.checkpointing.num-retained": str(step["keep"])})
        with World() as world:
            stops = [number for number in (step["operation"], step.get("second")) if number is not None]
            lives = run_stopped_leaders(setup, world, stops, step["dies_after"])
            how = " > ".join("crashed" if life.crashed else str(life.status and life.status.name) for life in lives)
            ended[how] = ended.get(how, 0) + 1
            context = f"{step}: {how}, {[str(life.failure) for life in lives if life.failure]}"
            report.check(world.visible() == expected[step["program"]], f"{context}: the output differs")
            finished = any(life.finished or life.status is JobStatus.FINISHED for life in lives)
            report.check(finished, f"{context}: no driver finished the job")
    report.figures |= {"pauses": len(trace.steps), **{f"ended {how}": count for how, count in sorted(ended.items())}}
    return report


def run_stopped_leaders(setup: Setup, world: World, stops: Sequence[int], dies_after: int | None) -> list[Life]:
    """Run drivers that take over from one another.

    Each of the first drivers is stopped before one of its operations, in `stops`, and the next one leads. The last one
    leads to the end of the job, or crashes after the operation `dies_after`. Then the stopped drivers continue, the
    last one first. If the job has not finished, another driver leads to its end."""
    lives: list[Life] = []
    started = 0

    def lead() -> None:
        nonlocal started
        index, started = started, started + 1

        def meanwhile(number: int) -> None:
            if index < len(stops) and number == stops[index] and started == index + 1:
                lead()

        faults = Faults(storage=(dies_after, "after") if index == len(stops) and dies_after is not None else None)
        life = run(setup, world, faults, leadership=create_leadership(world, f"driver-{index}"), meanwhile=meanwhile)
        lives.append(life)

    lead()
    while not any(life.finished or life.status is JobStatus.FINISHED for life in lives) and started < 5:
        lead()
    return lives
