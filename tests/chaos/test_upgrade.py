"""A job of an earlier release goes on with this one, whenever the first recovery dies.

And a job whose state has another schema than the checkpoint it goes on from."""

from __future__ import annotations

import ast
import importlib.util
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from millstream.functions import KeyedProcessFunction
from millstream.job.job_status import JobStatus
from millstream.state_descriptors.descriptors import ValueStateDescriptor
from millstream.types.factory import Types
from millstream.types.type_hints import find_type_of_hint
from millstream_chaos.samples import expected
from millstream_chaos.samples.programs import by_key, one_split
from millstream_chaos.simulation import Faults, Setup, World, find_operation, run
from millstream_chaos.simulation.crash_states import History, record_life
from millstream_chaos.simulation.storage_points import Script
from millstream_chaos.storage.faulty_files import Mode
from millstream_chaos.storage.memory_files import MemoryFileSystem

HERE = Path(__file__).parents[1] / "golden" / "disks"
RELEASES = sorted(HERE.glob("release-*.zip"))
STRIDE = 12  # every operation in turn takes long
MODES: tuple[Mode, ...] = ("after", "torn", "lost")


@pytest.fixture(scope="module")
def record() -> Any:
    spec = importlib.util.spec_from_file_location("golden_disks", HERE / "record.py")
    assert spec is not None
    assert spec.loader is not None
    made = sys.modules["golden_disks"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def disks(archive: Path) -> Iterator[tuple[str, MemoryFileSystem]]:
    """The disk of each program."""
    with zipfile.ZipFile(archive) as source:
        for program in sorted({name.partition("/")[0] for name in source.namelist()}):
            names = [name for name in source.namelist() if name.startswith(f"{program}/")]
            files = {name.removeprefix(program): source.read(name) for name in names}
            yield program, MemoryFileSystem.of(files, ["/checkpoints", "/output"])


def crash_and_recover(setup: Setup, history: History[Script], operations: range) -> Iterator[tuple[Any, World]]:
    """Every crash of a recorded life, lived to the end of the job."""
    for number in operations:
        mode = MODES[number % len(MODES)]
        left = history.restore_crash(number, mode)
        if not left.finished:
            life = run(setup, history.world)
            assert life.status is JobStatus.FINISHED, (history.operations[number], mode, life.failure)
        yield (history.operations[number], mode), history.world


def empty_script() -> Script:
    return Script(rescales={}, savepoint=False)


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.stem)
def test_a_job_of_an_earlier_release_survives_crashes_of_its_first_recovery(record: Any, release: Path) -> None:
    played = 0
    for offset, (program, disk) in enumerate(disks(release)):
        setup = record.setup_of(program)
        with World() as world:
            world.rewind(disk, World.BEGIN)
            history = record_life(setup, world, empty_script())
            assert world.visible() == expected.compute_rows(program), program
            for told, after in crash_and_recover(setup, history, range(offset % STRIDE, history.secured, STRIDE)):
                assert after.visible() == expected.compute_rows(program), (program, told)
                played += 1
    assert played > 20


def test_a_job_of_an_earlier_release_is_rescaled_by_its_first_recovery(record: Any) -> None:
    for program, disk in disks(RELEASES[0]):
        setup = replace(record.setup_of(program), parallelism=3)
        with World() as world:
            world.rewind(disk, World.BEGIN)
            assert run(setup, world).status is JobStatus.FINISHED
            assert world.visible() == expected.compute_rows(program), program


@dataclass
class Sum:
    sum: int


@dataclass
class Total:
    count: int = 0
    total: int = field(default=0, metadata={"renamed_from": "sum"})


class Summing(KeyedProcessFunction):
    def open(self, runtime_context: Any) -> None:
        self.state = runtime_context.get_state(ValueStateDescriptor("sum", find_type_of_hint(Sum)))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        before = self.state.value() or Sum(0)
        self.state.update(Sum(before.sum + value[2]))
        yield ctx.get_current_key(), value[2], before.sum + value[2]


class Totalling(KeyedProcessFunction):
    """The same with another state: a field is renamed, one is new."""

    def open(self, runtime_context: Any) -> None:
        self.state = runtime_context.get_state(ValueStateDescriptor("sum", find_type_of_hint(Total)))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        before = self.state.value() or Total()
        now = Total(before.count + 1, before.total + value[2])
        self.state.update(now)
        yield ctx.get_current_key(), value[2], now.total, now.count


def before(env: Any) -> Any:
    return one_split(env).key_by(by_key, Types.STRING()).process(Summing()).uid("sums")


def after(env: Any) -> Any:
    return one_split(env).key_by(by_key, Types.STRING()).process(Totalling()).uid("sums")


def test_a_job_with_another_schema_survives_crashes_of_its_first_recovery() -> None:
    old = Setup(before, epoch_records=6, checkpoint_every=2)
    new = replace(old, program=after)
    with World() as world:
        run(old, world, Faults(storage=(find_operation(old, "chk-2/_metadata"), "after")))
        world.rewind(world.disk, world.clock.millis)
        history = record_life(new, world, empty_script())
        right = world.visible()
        rows = [ast.literal_eval(row) for row in right]
        assert sorted(repr(row[:3]) for row in rows) == expected.compute_rows("ordered_timers")
        assert {len(row) for row in rows} == {3, 4}
        for told, later in crash_and_recover(new, history, range(0, history.secured, 2)):
            assert later.visible() == right, told
