"""Delayed messages: delivered once and in order, or cancelled, also after a restore."""

from millstream.runtime.entity_delays import Delays
from millstream.state.backend import OperatorState
from millstream.state.key_groups import KeyGrouper, range_of
from millstream.types.factory import Types


def delays():
    return Delays(OperatorState(range_of(0, 1, 128), 0, 1, KeyGrouper(128), Types.STRING()))


def record(text, sender="a/b:1"):
    return "2", "a/b", sender, "test/text", text.encode()


def due(delayed, now):
    return [record[-1].decode() for _, record in delayed.take_due(now)]


def test_messages_are_due_in_the_order_of_their_times_and_once():
    delayed = delays()
    for time, text in [(30, "c"), (10, "a"), (20, "b1"), (20, "b2")]:
        delayed.add("a/b", "1", time, "", record(text))
    assert delayed.next_time() == 10
    assert due(delayed, 9) == []
    assert due(delayed, 20) == ["a", "b1", "b2"]
    assert delayed.next_time() == 30
    assert due(delayed, 99) == ["c"]
    assert due(delayed, 99) == []
    assert delayed.next_time() is None


def test_a_token_cancels_all_its_messages_and_only_those():
    delayed = delays()
    delayed.add("a/b", "1", 10, "t", record("gone"))
    delayed.add("a/b", "1", 10, "u", record("other token"))
    delayed.add("a/b", "1", 20, "t", record("gone too"))
    delayed.add("a/b", "9", 20, "t", record("other sender", "a/b:9"))
    delayed.cancel("a/b", "1", "t")
    delayed.cancel("a/b", "1", "t")
    assert due(delayed, 99) == ["other token", "other sender"]
    delayed.cancel("a/b", "1", "u")  # was delivered
    assert delayed.next_time() is None


def test_a_token_can_be_used_again_when_its_message_was_delivered():
    delayed = delays()
    delayed.add("a/b", "1", 10, "t", record("first"))
    delayed.add("a/b", "1", 30, "t", record("second"))
    assert due(delayed, 10) == ["first"]
    delayed.cancel("a/b", "1", "t")
    delayed.add("a/b", "1", 40, "t", record("third"))
    assert due(delayed, 99) == ["third"]


def test_nothing_is_left_in_state():
    delayed = delays()
    delayed.add("a/b", "1", 10, "t", record("x"))
    delayed.add("a/b", "1", 20, "u", record("y"))
    delayed.cancel("a/b", "1", "t")
    assert delayed.next_time() == 20
    assert due(delayed, 99) == ["y"]
    for table in (delayed._messages, delayed._tokens, delayed._timers.table):
        assert table.namespaces() == []
