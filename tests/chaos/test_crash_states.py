"""The state that a crash leaves is derived from one run without faults. It equals that of a job that ran and died
there."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import cache
from itertools import product

from millstream_chaos import registry as chaos
from millstream_chaos.cases import storage
from millstream_chaos.cases.storage import Script
from millstream_chaos.samples.programs import PROGRAMS
from millstream_chaos.simulation import Faults, Setup, World, run
from millstream_chaos.simulation.crash_states import fingerprint, operation_shape, record_life
from millstream_chaos.simulation.storage_points import parse_faults
from millstream_chaos.storage.faulty_files import CRASHES

SETUP = Setup(PROGRAMS["side_output"], epoch_records=30, checkpoint_every=1)


@cache
def planned() -> chaos.Trace:
    return chaos.plan("storage", 1, "ci")


def test_a_crash_leaves_the_recorded_state():
    """For each type of operation and each way to die: the last operation of that type."""
    with World() as world:
        history = record_life(SETUP, world, Script.of("stopped"))
        last = {each.name: number for number, each in enumerate(history.operations)}
        assert {"write_bytes", "append_bytes", "make_dirs", "replace", "remove", "sync_dir"} <= set(last)
        for number, mode in product(last.values(), CRASHES):
            left = history.restore_crash(number, mode)
            script = Script.of("stopped")
            with World() as other:
                life = run(SETUP, other, Faults(storage=(number, mode)), listen=script)
                assert life.crashed
                assert fingerprint(world) == fingerprint(other), (history.operations[number], mode)
                assert (left.listener.pending_requests(), left.finished) == (script.pending_requests(), life.finished)


def test_a_crash_of_a_recovery_leaves_the_recorded_state():
    """The same for the life after a crash between a checkpoint and its commit, and after one inside a savepoint."""
    with World() as world:
        history = record_life(SETUP, world, Script.of("stopped"))
        made = [number for number, each in enumerate(history.operations) if each.target.endswith("/_metadata")]
        savepoint = next(number for number in made if "/savepoints/" in history.operations[number].target)
        for first in (made[2], savepoint - 1):
            left = history.restore_crash(first, "after")
            recovery = record_life(SETUP, world, copy(left.listener))
            assert 0 < recovery.secured < len(recovery.operations)
            last = {each.name: number for number, each in enumerate(recovery.operations[: recovery.secured])}
            for kind, mode in product(("append_bytes", "write_bytes", "replace"), CRASHES):
                number = last[kind]
                left = recovery.restore_crash(number, mode)
                script = Script.of("stopped")
                with World() as other:
                    run(SETUP, other, Faults(storage=(first, "after")), listen=script)
                    life = run(SETUP, other, Faults(storage=(number, mode)), listen=script)
                    assert life.crashed
                    assert fingerprint(world) == fingerprint(other), (recovery.operations[number], mode)
                    assert (left.listener.pending_requests(), left.finished) == (
                        script.pending_requests(),
                        life.finished,
                    )


def test_the_programs_of_ci_cover_all_storage_operations():
    trace, played, touched = planned(), set(), set()
    with World() as world:
        for job, (name, records) in product(storage.JOBS, trace.parameters["epoch records"].items()):
            points = storage.Points(name, job, records, world)
            first = {parse_faults(each)[0].operation for each in _steps(trace, name, job)} - {None}
            played |= {operation_shape(points.history.operations[number]) for number in first}
    for name, job in product(PROGRAMS, ("rescaled", "stopped")):
        with World() as world:
            life = run(Setup(PROGRAMS[name], epoch_records=6, checkpoint_every=1), world, listen=Script.of(job))
            touched |= set(map(operation_shape, life.operations))
    assert touched <= played


def _steps(trace, program, job):
    plain = {"program": program, "job": job, "every": 1, "sink": "visible"}
    return [each for each in trace.steps if plain.items() <= each.items()]


def test_the_outcome_of_a_point_does_not_depend_on_other_points(tmp_path):
    """The remains of one fault do not change the result of the next."""
    trace = replace(planned(), steps=planned().steps[::600])
    alone = [chaos.play(trace.slice_steps(n, n + 1), tmp_path).figures for n in range(len(trace.steps))]
    together = chaos.play(trace, tmp_path).figures
    assert {name: sum(each.get(name, 0) for each in alone) for name in together} == together


def test_derived_and_executed_crashes_of_a_recovery_have_the_same_outcome():
    """Also if the recovery crashes before it gets there."""
    with World() as world:
        points = storage.Points("side_output", "stopped", 40, world)
        number, mode = points.crash_points[1]
        again = [[4, "torn"], [9, "after"], [20, "before"], [10_000, "after"]]
        steps = [{"operation": number, "mode": mode, "lasting": 1, "again": each} for each in again]
        derived = [points.outcome(step) for step in steps]
        points.crash_points = ()  # as any other crash
        assert [points.outcome(step) for step in steps] == derived
        assert [each.crashes for each in derived] == [2, 2, 2, 1]
