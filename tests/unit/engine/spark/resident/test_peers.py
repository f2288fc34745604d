"""The exchange between slots, on socket pairs."""

from __future__ import annotations

import socket
import threading

import pytest

from millstream.engine.spark.resident.inbox import Inbox, PeerLost
from millstream.engine.spark.resident.peers import Peers
from millstream.engine.spark.resident.wire import Channel


@pytest.fixture
def pair():
    """Two connected slots, each with its inbox."""
    left, right = map(Channel, socket.socketpair())
    inboxes = Inbox(1 << 30), Inbox(1 << 30)
    yield (Peers(0, {1: left}, inboxes[0]), inboxes[0]), (Peers(1, {0: right}, inboxes[1]), inboxes[1])
    left.close()
    right.close()


def test_two_slots_that_send_much_to_each_other_do_not_wait_for_each_other(pair) -> None:
    block = bytes(8 << 20)
    received: list[int] = []

    def run(slot: int) -> None:
        peers, inbox = pair[slot]
        inbox.begin(1)
        for _ in range(4):
            peers.send(1, 1, 1 - slot, block)
        peers.complete(1, 0, {0, 1})
        received.append(sum(map(len, inbox.take(1, 1, {(0, 0), (0, 1)}))))

    threads = [threading.Thread(target=run, args=(slot,), daemon=True) for slot in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert received == [4 * len(block)] * 2


def test_small_blocks_keep_their_order_and_level(pair) -> None:
    (sender, own), (_, inbox) = pair
    own.begin(1)
    inbox.begin(1)
    for number in range(100):
        sender.send(1, 1 + number % 2, 1, b"%d" % number)
    sender.send(1, 1, 1, bytes(1 << 17))
    sender.send(1, 1, 0, b"to itself")
    sender.complete(1, 0, {0, 1})
    blocks = inbox.take(1, 1, {(0, 0)})
    assert [bytes(block) for block in blocks] == [b"%d" % number for number in range(0, 100, 2)] + [bytes(1 << 17)]
    assert inbox.take(1, 2, {(0, 0)}) == [b"%d" % number for number in range(1, 100, 2)]
    assert own.take(1, 1, {(0, 0)}) == [b"to itself"]


def test_reader_and_sender_detect_a_broken_connection(pair) -> None:
    (sender, _), (_, inbox) = pair
    inbox.begin(1)
    sender._channels[1].close()
    with pytest.raises(PeerLost, match="slot 0"):
        inbox.take(1, 1, {(0, 0)})
    with pytest.raises(PeerLost, match="slot 1"):
        sender.send(1, 1, 1, bytes(1 << 17))


def test_blocks_that_cannot_be_written_to_disk_fail_the_level(tmp_path) -> None:
    left, right = map(Channel, socket.socketpair())
    inbox = Inbox(10, str(tmp_path / "missing"))
    inbox.begin(1)
    sender, _ = Peers(0, {1: left}, Inbox(1 << 20)), Peers(1, {0: right}, inbox)
    sender.send(1, 1, 1, bytes(100))
    sender.complete(1, 0, {1})
    with pytest.raises(PeerLost, match="cannot be written to disk"):
        inbox.take(1, 1, {(0, 0)})
    left.close()
    right.close()
