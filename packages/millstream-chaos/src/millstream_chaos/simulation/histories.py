"""Random histories: several lives of a job, each with faults and perhaps another parallelism.

    python -m millstream_chaos.simulation.histories --seeds N

Promises: a history is a function of its seed; its visible output is compared with that of a run without faults.
Does not know: Spark, threads, real time."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from millstream.job.job_status import JobStatus
from millstream_chaos.samples import programs as sample_programs
from millstream_chaos.simulation.lives import run, run_lives
from millstream_chaos.simulation.references import compute_reference
from millstream_chaos.simulation.setup import Faults, Program, Setup
from millstream_chaos.simulation.world import World
from millstream_chaos.storage.faulty_files import CRASHES


def draw_setup(seed: int, programs: Mapping[str, Program] = sample_programs.PROGRAMS) -> tuple[str, Setup]:
    """Draw a program and how its input is cut."""
    chance = np.random.default_rng(seed)
    name = str(chance.choice(sorted(programs)))
    setup = Setup(
        programs[name],
        parallelism=int(chance.integers(1, 5)),
        epoch_records=int(chance.choice([1, 2, 5, 9, 30, 1000])),
        block_records=int(chance.choice([1, 2, 7, 65536])),
        checkpoint_every=int(chance.integers(1, 5)),
        backend=str(chance.choice(["hashmap", "lmdb"])),
        options={"execution.checkpointing.num-retained": str(chance.integers(1, 4))},
    )
    return name, setup


def draw_faults(chance: Any) -> Faults:
    """Draw the faults of one life."""
    return Faults(
        storage=(int(chance.integers(0, 400)), CRASHES[int(chance.integers(0, 3))]) if chance.random() < 0.7 else None,
        engine=frozenset(map(int, chance.integers(0, 30, int(chance.integers(0, 3))))),
        forget=float(chance.choice([0.0, 0.1, 0.5])),
        flip=float(chance.choice([0.0, 0.5])),
        attempts=str(chance.choice(["once", "twice", "broken", "mixed"])),
        mixes=float(chance.choice([0.0, 0.02])),
        most_records=int(chance.integers(1, 20)) if chance.random() < 0.2 else None,
        seed=int(chance.integers(0, 1 << 30)),
    )


def run_history(seed: int) -> str | None:
    """Run one history of lives with faults and changes of parallelism; return the problem, None if there is none."""
    name, setup = draw_setup(seed)
    expected = compute_reference(setup)
    chance = np.random.default_rng([seed, 1])
    lives = [name]
    with World() as world:
        for _ in range(int(chance.integers(1, 6))):
            life = run(setup, world, draw_faults(chance))
            lives.append(f"p={setup.parallelism}:{'crashed' if life.crashed else life.status}")
            if not life.crashed or life.finished:
                break
            setup = replace(setup, parallelism=int(chance.integers(1, 5)))
        else:
            life = run_lives(setup, world)[-1]
        visible = world.visible()
        if (life.finished or life.status is JobStatus.FINISHED) and visible == expected:
            return None
        missing = [row for row in expected if row not in visible]
        return f"{' > '.join(lives)}: {life.status} {life.failure}, {len(visible)} rows, missing {missing[:5]}"


def main(arguments: list[str] | None = None) -> int:
    """Run many histories; print the seeds of those with a problem."""
    parser = argparse.ArgumentParser(prog="python -m millstream_chaos.simulation.histories", description=main.__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="the number of histories")
    first = int(os.environ.get("MILLSTREAM_SEED", "0"))
    args = parser.parse_args(arguments)
    logging.getLogger("millstream").setLevel(logging.ERROR)
    wrong = 0
    for seed in range(first, first + args.seeds):
        problem = run_history(seed)
        if problem is not None:
            wrong += 1
            sys.stdout.write(f"MILLSTREAM_SEED={seed}: {problem}\n")
    sys.stdout.write(f"{args.seeds} histories from seed {first}, {wrong} wrong\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
