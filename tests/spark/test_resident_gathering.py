"""The connections of a stage: which connections are accepted, and the effect of a missing slot."""

from __future__ import annotations

import logging
import time

import pytest

from millstream.engine.spark.resident.gathering import Gathering, SlotsMissing, greet
from millstream.engine.spark.resident.wire import ConnectionRefused, Frame, Listener, connect

SECRET = b"s" * 32


@pytest.fixture
def listener():
    made = Listener.on_host()
    yield made
    made.close()


def test_all_slots_connect_and_unknown_connections_have_no_effect(
    listener: Listener, caplog: pytest.LogCaptureFixture
) -> None:
    gathering = Gathering([listener], SECRET, range(2))
    with caplog.at_level(logging.WARNING), pytest.raises(ConnectionRefused):
        connect(listener.address, b"x" * 32)
    slots = [greet(connect(listener.address, SECRET), slot) for slot in (1, 0)]
    channels = gathering.wait(30)
    gathering.close()
    assert sorted(channels) == [0, 1]
    channels[1].send(Frame(1, 7))
    assert slots[0].receive().run == 7
    while "refused" not in caplog.text:  # by the thread that accepts connections
        time.sleep(0.01)
    for channel in (*slots, *channels.values()):
        channel.close()


def test_a_second_connection_of_a_slot_is_closed(listener: Listener) -> None:
    gathering = Gathering([listener], SECRET, range(1))
    first = greet(connect(listener.address, SECRET), 0)
    channels = gathering.wait(30)
    second = greet(connect(listener.address, SECRET), 0)
    with pytest.raises(EOFError):
        second.receive()
    gathering.close()
    for channel in (first, second, *channels.values()):
        channel.close()


def test_missing_slots_are_named(listener: Listener) -> None:
    gathering = Gathering([listener], SECRET, range(3))
    slot = greet(connect(listener.address, SECRET), 1)
    with pytest.raises(SlotsMissing, match=r"2 resident slots have not connected within 0.2 s: 0, 2"):
        gathering.wait(0.2)
    gathering.close()
    slot.close()


def test_a_failure_ends_the_wait(listener: Listener) -> None:
    gathering = Gathering([listener], SECRET, range(1))
    gathering.fail(ValueError("the job has failed"))
    with pytest.raises(ValueError, match="the job has failed"):
        gathering.wait(30)
    gathering.close()
