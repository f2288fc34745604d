"""A job is rescaled again and again while it runs, and crashes inside half of the changes.

Promises: whatever parallelism it goes to, from 1 to 16, keyed, broadcast, list and union state and timers are right:
the output is that of a run that was never rescaled.
Does not know: Spark; the pause on Spark is measured by `benchmarks` and `tests/cluster_real`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from millstream.cluster.job_events import EpochDone, JobEvent, RescaleDone
from millstream.cluster.job_master import JobMaster
from millstream.job.job_status import JobStatus
from millstream.testing.chaos import Report, Trace
from millstream.testing.faults import CRASHES
from millstream.testing.sample_programs import PROGRAMS, Longer
from millstream.testing.simulation import Setup, World, reference, run

MOST = 16
_SIZES = {"ci": (2, 6), "normal": (17, 20), "long": (34, 60)}  # walks, steps of each
_STEPS = 6  # for which the input of a sample program is long enough


def plan(seed: int, size: str) -> Trace:
    """Programs, and for each the parallelisms it goes to and where it crashes."""
    walks, length = _SIZES[size]
    chance = np.random.default_rng([seed, 9])
    names = sorted(PROGRAMS)
    order = [names[int(place)] for place in chance.permutation(len(names))]
    steps = []
    for walk in range(walks):
        path = [
            {
                "parallelism": int(chance.integers(1, MOST + 1)),
                "epochs": int(chance.integers(1, 3)),
                "crash": int(chance.integers(0, 40)) if chance.random() < 0.5 else None,
                "mode": CRASHES[int(chance.integers(0, len(CRASHES)))],
            }
            for _ in range(length)
        ]
        backend = "lmdb" if chance.random() < 0.3 else "hashmap"
        begin = int(chance.integers(1, MOST + 1))
        steps.append({"program": order[walk % len(order)], "backend": backend, "begin": begin, "path": path})
    return Trace("rescale", seed, size, {}, steps)


class Walk:
    """One walk: orders the next step when it is due, and lets the process die where the step says."""

    def __init__(self, world: World, path: list[dict[str, Any]]) -> None:
        self._world, self._path = world, path
        self._epochs = 0
        self.rescaled = 0

    @property
    def left(self) -> int:
        """How many steps were not taken: the job had ended."""
        return len(self._path)

    def __call__(self, observation: JobEvent, master: JobMaster) -> None:
        """Something happened."""
        if isinstance(observation, RescaleDone):
            self.rescaled += 1
        if not isinstance(observation, EpochDone) or not self._path:
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
    """Walk every walk."""
    report = Report(trace)
    crashes = rescales = left = 0
    for step in trace.shown():
        setup = Setup(
            Longer(PROGRAMS[step["program"]], -(-len(step["path"]) // _STEPS)),
            parallelism=step["begin"],
            epoch_records=3,
            checkpoint_every=3,
            backend=step["backend"],
            options={"pipeline.max-parallelism": str(MOST)},
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
                setup = replace(setup, parallelism=1 + (setup.parallelism * 7 + lives) % MOST)
            rescales += walk.rescaled
            left += walk.left
            told = f"{step['program']} from {step['begin']}, {lives} lives"
            finished = life.finished or life.status is JobStatus.FINISHED
            report.check(finished, f"{told}: {life.status} {life.failure}")
            report.check(world.visible() == reference(setup), f"{told}: the output differs")
    report.figures |= {"walks": len(trace.steps), "rescaled": rescales, "crashes": crashes, "steps not taken": left}
    report.check(rescales > 0, "nothing was rescaled")
    return report
