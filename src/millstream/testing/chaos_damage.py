"""Every file of a job's newest checkpoint is damaged in every way; then the job is started again.

Promises: damage is noticed before user code sees state; the job goes on from an older checkpoint to the right output,
or says which files are damaged. Never is there wrong output.
Does not know: what the files mean."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from millstream.checkpoint.metadata import CheckpointMetadata
from millstream.cluster.checkpoints import AllCheckpointsDamaged
from millstream.model.job_status import JobStatus
from millstream.testing.chaos import Report, Trace
from millstream.testing.memory_files import MemoryFileSystem
from millstream.testing.sample_programs import PROGRAMS
from millstream.testing.simulation import ROOT, Faults, Setup, World, point, reference, run

_SIZES = {"ci": 1, "normal": 5, "long": len(PROGRAMS)}  # programs
KEPT = 5  # the checkpoint after which the job dies


Damage = Callable[[bytes, bytes, int], bytes | None]


def _flip(data: bytes, _other: bytes, place: int) -> bytes:
    at = place % max(len(data), 1)
    return data[:at] + bytes([data[at] ^ (1 << place % 8)]) + data[at + 1 :]


DAMAGES: dict[str, Damage] = {  # of a file's bytes, those of another file, and a place drawn from the seed
    "flip": _flip,
    "truncate": lambda data, _other, place: data[: place % max(len(data), 1)],
    "delete": lambda _data, _other, _place: None,
    "zero": lambda data, _other, _place: b"\0" * len(data),
    "swap": lambda _data, other, _place: other,
}


def plan(seed: int, size: str) -> Trace:
    """Which programs, and where in a file it is damaged; all files in all ways."""
    chance = np.random.default_rng([seed, 13])
    names = sorted(map(str, chance.choice(sorted(PROGRAMS), _SIZES[size], replace=False)))
    steps = [{"program": name, "place": int(chance.integers(0, 1 << 30))} for name in names]
    return Trace("damage", seed, size, {}, steps)


def play(trace: Trace, _directory: Path) -> Report:
    """Damage one file at a time."""
    report = Report(trace)
    outcomes = {"went back": 0, "refused": 0, "unharmed": 0}
    for step in trace.shown():
        setup = Setup(PROGRAMS[step["program"]], epoch_records=15, checkpoint_every=1, repeats=True)
        disk, expected = stopped(setup), reference(setup)
        for path in targets(disk):
            for damage in DAMAGES:
                told = f"{step['program']}: {damage} of {path}"
                outcomes[_one(setup, disk, expected, path, damage, step["place"], told, report)] += 1
    report.figures |= outcomes
    report.check(outcomes["went back"] > 0, "no damage was survived")
    return report


def stopped(setup: Setup) -> MemoryFileSystem:
    """The disk of a job that died after some checkpoints."""
    last = min(KEPT, _checkpoints(setup) - 1)
    with World() as world:
        run(setup, world, Faults(storage=(point(setup, f"chk-{last}/_metadata", "epochs.log"), "after")))
        return world.disk


def _checkpoints(setup: Setup) -> int:
    with World() as world:
        return len(run(setup, world).checkpoints)


def targets(disk: MemoryFileSystem) -> list[str]:
    """The files of the newest checkpoint: its metadata and all it names."""
    newest = max(path for path in disk.files if path.endswith("/_metadata"))
    data = disk.files[newest]
    metadata = CheckpointMetadata.from_bytes(data[: data.rindex(b"\nsha256 ")])
    return [newest, *sorted({f"{ROOT}/{handle.file}" for handle in metadata.handles})]


def _one(
    setup: Setup,
    disk: MemoryFileSystem,
    expected: list[str],
    path: str,
    damage: str,
    place: int,
    told: str,
    report: Report,
) -> str:
    with World() as world:
        world.disk.files, world.disk.directories = dict(disk.files), set(disk.directories)
        other = next(data for name, data in disk.files.items() if name != path and "/shared/" in name)
        made = DAMAGES[damage](disk.files[path], other, place)
        if made == disk.files[path]:
            return "unharmed"
        if made is None:
            del world.disk.files[path]
        else:
            world.disk.files[path] = made
        before = world.visible()
        life = run(setup, world)
        if life.status is JobStatus.FINISHED:
            report.check(world.visible() == expected, f"{told}: the output differs")
            return "went back"
        report.check(isinstance(life.failure, AllCheckpointsDamaged), f"{told}: {life.failure!r}")
        report.check(not life.epochs and world.visible() == before, f"{told}: user code ran")
        return "refused"
