"""A job is rescaled many times while it runs, and crashes during half of the rescales.

Promises: at every parallelism from 1 to 16, keyed, broadcast, list and union state and timers are right: the output is
that of a run without rescales.
Does not know: Spark; `benchmarks` and `tests/cluster_real` measure the pause on Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from millstream.cluster.job_events import EpochDone, JobEvent, RescaleDone
from millstream.cluster.job_master import JobMaster
from millstream.job.job_status import JobStatus
from millstream_chaos.samples.programs import PROGRAMS, Longer
from millstream_chaos.simulation import Setup, World, compute_reference, run
from millstream_chaos.storage.faulty_files import CRASHES
from millstream_chaos.trace import Report, Trace

MAX_PARALLELISM = 16
_SIZES = {"ci": (2, 6), "normal": (17, 20), "long": (34, 60)}  # the number of walks, and of steps in each
_STEPS = 6  # the number of steps that fit into the input of a sample program


def plan(seed: int, size: str) -> Trace:
    """Draw the programs, their parallelisms, and where they crash."""
    walks, length = _SIZES[size]
    chance = np.random.default_rng([seed, 9])
    names = sorted(PROGRAMS)
    order = [names[int(index)] for index in chance.permutation(len(names))]
    steps = []
    for walk in range(walks):
        path = [
            {
                "parallelism": int(chance.integers(1, MAX_PARALLELISM + 1)),
                "epochs": int(chance.integers(1, 3)),
                "crash": int(chance.integers(0, 40)) if chance.random() < 0.5 else None,
                "mode": CRASHES[int(chance.integers(0, len(CRASHES)))],
            }
            for _ in range(length)
        ]
        backend = "lmdb" if chance.random() < 0.3 else "hashmap"
        begin = int(chance.integers(1, MAX_PARALLELISM + 1))
        steps.append({"program": order[walk % len(order)], "backend": backend, "begin": begin, "path": path})
    return Trace("rescale", seed, size, {}, steps)


class Walk:
    """A listener that requests the next rescale when it is due, and schedules the crash of the step."""

    def __init__(self, world: World, path: list[dict[str, Any]]) -> None:
        self._world, self._path = world, path
        self._epochs = 0
        self.rescaled = 0

    @property
    def steps_left(self) -> int:
        """The number of steps that did not happen, because the job had ended."""
        return len(self._path)

    def __call__(self, event: JobEvent, master: JobMaster) -> None:
        """Count rescales, and request the next one after enough epochs."""
        if isinstance(event, RescaleDone):
            self.rescaled += 1
        if not isinstance(event, EpochDone) or not self._path:
            return
        self._epochs += 1
        if self._epochs < self._path[0]["epochs"]:
            return
        self._epochs = 0
        step = self._path.pop(0)
        master.rescale(step["parallelism"])
        faulty = self._world.faulty
        if step["crash"] is not None and faulty is not None:
            faulty.crash_at, faulty.mode = len(faulty.operations) + step["crash"], step["mode"]


def play(trace: Trace, _directory: Path) -> Report:
    """Run every program with its rescales and crashes."""
    report = Report(trace)
    crashes = rescales = left = 0
    for step in trace.iterate_steps():
        setup = Setup(
            Longer(PROGRAMS[step["program"]], -(-len(step["path"]) // _STEPS)),
            parallelism=step["begin"],
            epoch_records=3,
            checkpoint_every=3,
            backend=step["backend"],
            options={"pipeline.max-parallelism": str(MAX_PARALLELISM)},
        )
        with World() as world:
            walk = Walk(world, list(step["path"]))
            lives = 0
            while True:
                life = run(setup, world, listen=walk)
                lives += 1
                if not life.crashed or life.finished or lives > 100:
                    break
                crashes += 1
                setup = replace(setup, parallelism=1 + (setup.parallelism * 7 + lives) % MAX_PARALLELISM)
            rescales += walk.rescaled
            left += walk.steps_left
            context = f"{step['program']} from {step['begin']}, {lives} lives"
            finished = life.finished or life.status is JobStatus.FINISHED
            report.check(finished, f"{context}: {life.status} {life.failure}")
            report.check(world.visible() == compute_reference(setup), f"{context}: the output differs")
    report.figures |= {
        "walks": len(trace.steps),
        "rescaled": rescales,
        "crashes": crashes,
        "steps left": left,
    }
    report.check(rescales > 0, "nothing was rescaled")
    return report
