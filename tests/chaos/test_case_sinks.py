"""Cases of the simulation run with different sinks; the file sink is the real one, on the simulated disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from millstream.files.contract import FileSystem
from millstream.files.local import LocalFileSystem
from millstream.job.job_status import JobStatus
from millstream_chaos.outputs.simulated_sinks import SINKS, SimulatedFiles
from millstream_chaos.samples.programs import PROGRAMS
from millstream_chaos.simulation import Faults, Setup, World, compute_reference, run, run_lives
from millstream_chaos.storage.faulty_files import CRASHES, Mode
from millstream_chaos.storage.power import POWER_LOSSES

SETUP = Setup(PROGRAMS["tumbling"], epoch_records=20)


@pytest.mark.parametrize("sink", SINKS)
def test_every_sink_contains_the_output_of_the_program(sink: str) -> None:
    setup = replace(SETUP, sink=sink)
    with World() as world:
        assert run(setup, world).status is JobStatus.FINISHED
        assert world.visible() == compute_reference(setup) == compute_reference(SETUP)


@pytest.mark.parametrize("mode", [*CRASHES, *POWER_LOSSES])
def test_part_files_survive_crashes_and_power_losses(mode: Mode) -> None:
    setup = replace(SETUP, sink="files")
    with World() as world:
        operations = run(setup, world).operations
    renamed = [number for number, each in enumerate(operations) if each.target.startswith("/output/")]
    assert renamed
    for number in renamed[::4]:
        with World() as world:
            run_lives(setup, world, [Faults(storage=(number + 1, mode))])
            assert world.visible() == compute_reference(SETUP), operations[number]


def test_staged_files_that_are_read_incompletely_are_not_merged() -> None:
    setup = replace(SETUP, sink="files", parallelism=1, epoch_records=6, checkpoint_every=5)
    with World() as world:
        reads = run(setup, world).reads
    staged = [n for n, each in enumerate(reads) if each.name == "read_bytes" and "/.staging/" in each.path]
    assert staged
    for number in staged[:4]:
        with World() as world:
            life = run(setup, world, Faults(reads=(number, "short")))
            assert life.status is JobStatus.FINISHED, life.failure
            assert world.visible() == compute_reference(SETUP)


def test_a_staged_file_that_is_temporarily_missing_is_committed() -> None:
    """At the first commit, and when a recovery repeats a commit that was noted."""
    setup = replace(SETUP, sink="files")
    with World() as world:
        operations = run(setup, world).operations
    noted = next(n for n, each in enumerate(operations) if each.name == "sync_dir" and each.path.endswith("/commits"))
    with World() as world:
        run(setup, world, Faults(storage=(noted, "after")))
        disk, millis = world.disk, world.clock.millis
        world.rewind(disk.copy(), millis)
        reads = run(setup, world).reads
        asked = [n for n, each in enumerate(reads) if each.name == "exists" and "/.staging/" in each.path]
        for number in asked[:6]:
            world.rewind(disk.copy(), millis)
            life = run(setup, world, Faults(reads=(number, "enoent")))
            assert life.status is JobStatus.FINISHED, life.failure
            assert world.visible() == compute_reference(SETUP), reads[number]


def test_walking_the_simulated_disk_equals_walking_a_real_one(tmp_path: Path) -> None:
    def walk(files: FileSystem, root: str) -> list[tuple[str, list[str], list[str]]]:
        for name in ("a/1", "a/b/2", "3"):
            with files.writing(f"{root}/{name}") as stream:
                stream.write(b"x")
        return [(folder.removeprefix(root), folders, names) for folder, folders, names in files.walk(root)]

    with World() as world:
        assert walk(SimulatedFiles(), f"simulated://{world.files.name}/root") == walk(
            LocalFileSystem(private=False), str(tmp_path)
        )
