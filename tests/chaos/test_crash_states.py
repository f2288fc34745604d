"""What a crash leaves is known from one life without faults: the same as if the job had been run and had died there."""

from __future__ import annotations

from itertools import product

from millstream.testing import chaos, chaos_storage
from millstream.testing.crash_states import fingerprint, recorded
from millstream.testing.faults import CRASHES
from millstream.testing.sample_programs import PROGRAMS
from millstream.testing.simulation import Faults, Setup, World, run


def test_a_crash_leaves_what_the_record_says():
    """For each kind of operation and each way to die: the last operation of that kind."""
    setup = Setup(PROGRAMS["session"], epoch_records=15, checkpoint_every=1)
    with World() as world:
        history = recorded(setup, world, chaos_storage.Script(savepoint=True))
        last = {each.kind: number for number, each in enumerate(history.operations)}
        assert {"write_bytes", "append_bytes", "make_dirs", "replace", "remove", "sync_dir"} <= set(last)
        for number, mode in product(last.values(), CRASHES):
            left = history.left(number, mode)
            script = chaos_storage.Script(savepoint=True)
            with World() as other:
                life = run(setup, other, Faults(storage=(number, mode)), listen=script)
                assert life.crashed
                assert fingerprint(world) == fingerprint(other), (history.operations[number], mode)
                assert (left.listener.remembered(), left.finished) == (script.remembered(), life.finished)


def test_a_point_says_what_it_says_when_it_is_played_alone(tmp_path):
    """Nothing that one fault has left changes what is seen of the next."""
    trace = chaos.planned("storage", 3, "ci")
    trace = chaos.Trace("storage", 3, "ci", {}, trace.steps[::30])
    alone = [chaos.played(trace.sliced(n, n + 1), tmp_path).figures for n in range(len(trace.steps))]
    together = chaos.played(trace, tmp_path).figures
    assert {name: sum(each[name] for each in alone) for name in together} == together
