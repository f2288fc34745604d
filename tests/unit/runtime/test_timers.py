"""Timers fire once and in time order, also after a restore."""

import hashlib

from hypothesis import example, given
from hypothesis import strategies as st

from millstream.runtime.timers import Timers
from millstream.state.backend import OperatorState
from millstream.state.handles import Handle, Lineage
from millstream.state.key_groups import KeyGrouper, range_of
from millstream.types.factory import Types
from millstream.windows.window import TimeWindow


class Subtask:
    """The timers of an operator, moved to another worker whenever `move` is called."""

    def __init__(self):
        self.lineage, self.files = Lineage(), {}
        self.begin()

    def begin(self):
        self.state = OperatorState(range_of(0, 1, 128), 0, 1, KeyGrouper(128), Types.STRING())
        self.timers = Timers(self.state, "event")
        self.state.advance(self.lineage, lambda handle: self.files[handle.name])

    def move(self):
        changed = self.state.encode_delta()
        if changed is not None:
            name = f"f{len(self.files)}"
            self.files[name] = changed[0]
            digest = hashlib.sha256(changed[0]).hexdigest()
            self.lineage = self.lineage.extend(Handle(name, len(changed[0]), digest, 0))
        self.begin()


WINDOWS = (None, TimeWindow(0, 10), TimeWindow(5, 15))
steps = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from(["register", "register", "delete"]),
            st.tuples(st.integers(0, 12), st.sampled_from(WINDOWS), st.sampled_from("abc")),
        ),
        st.tuples(st.just("due"), st.integers(0, 12)),
        st.tuples(st.just("move"), st.none()),
    ),
    max_size=40,
)


def run_timers(todo, *, moving):
    """The timers that fire at each advance of time; the model is a set."""
    subtask, waiting, found = Subtask(), set(), []
    for name, what in todo:
        if name == "move":
            if moving:
                subtask.move()
        elif name == "due":
            expected = {timer for timer in waiting if timer[0] <= what}
            got = list(subtask.timers.due(what))
            assert sorted(map(str, got)) == sorted(map(str, expected)), "each once"
            assert [time for time, _, _ in got] == sorted(time for time, _, _ in got)
            waiting -= expected
            found.append(got)
        else:
            time, namespace, key = what
            getattr(subtask.timers, name)(namespace, key, time)
            (waiting.add if name == "register" else waiting.discard)((time, namespace, key))
        assert subtask.timers.next() == min((time for time, _, _ in waiting), default=None)
    return found


FIRST, SECOND = WINDOWS[1:]


@given(steps)
@example(
    [
        ("register", (9, SECOND, "a")),
        ("register", (5, FIRST, "a")),
        ("register", (5, SECOND, "a")),
        ("move", None),
        ("due", 9),
    ]
)
def test_timers_agree_with_a_sorted_set(todo):
    assert run_timers(todo, moving=True) == run_timers(todo, moving=False), (
        "a move must not show, not even in the order"
    )


def test_a_timer_registered_while_others_fire_is_fired_in_order():
    timers, seen = Subtask().timers, []
    for time in (1, 5, 9):
        timers.register(None, "a", time)
    for time, _, key in timers.due(10):
        seen.append(time)
        if time == 1:
            timers.register(None, key, 7)
            timers.register(None, key, 3)
            timers.register(None, key, 11)
            timers.delete(None, key, 9)
        if time == 3:
            timers.register(None, key, 12)
    assert seen == [1, 3, 5, 7]
    assert timers.next() == 11
    assert [time for time, _, _ in timers.due(20)] == [11, 12]


def test_an_abandoned_attempt_fires_its_timers_again():
    subtask = Subtask()
    subtask.timers.register(None, "a", 5)
    subtask.move()
    assert list(subtask.timers.due(9)) == [(5, None, "a")]
    subtask.state.abandon()
    subtask.state.advance(subtask.lineage, lambda handle: subtask.files[handle.name])
    assert list(subtask.timers.due(9)) == [(5, None, "a")]
    assert list(subtask.timers.due(9)) == []
