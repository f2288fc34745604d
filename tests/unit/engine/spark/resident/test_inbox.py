"""The inbox of a slot: order, levels, and blocks that do not fit into memory."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from millstream.engine.spark.resident.inbox import Inbox, PeerLost


def test_a_level_waits_for_all_its_senders() -> None:
    inbox = Inbox(1 << 20)
    inbox.begin(1)
    inbox.add(1, 1, [b"a"])
    inbox.complete(1, 0, 0)
    taken: list[list[bytes | memoryview]] = []
    thread = threading.Thread(target=lambda: taken.append(inbox.take(1, 1, {(0, 0), (0, 1)})))
    thread.start()
    inbox.add(1, 2, [b"of another level"])
    inbox.add(1, 1, [b"b", b"c"])
    assert not taken
    inbox.complete(1, 0, 1)
    thread.join()
    assert taken == [[b"a", b"b", b"c"]]
    assert inbox.take(1, 2, ()) == [b"of another level"]


def test_blocks_beyond_the_memory_share_are_read_from_disk(tmp_path: Path) -> None:
    inbox = Inbox(10, str(tmp_path))
    inbox.begin(1)
    inbox.add(1, 1, [b"12345", b"678"])
    inbox.add(1, 1, [b"abcdef"])
    inbox.add(1, 2, [b"xyz", b""])
    blocks = inbox.take(1, 1, ())
    assert [bytes(block) for block in blocks] == [b"12345", b"678", b"abcdef"]
    assert inbox.spooled_bytes == 9
    assert [bytes(block) for block in inbox.take(1, 2, ())] == [b"xyz", b""]
    assert not list(tmp_path.iterdir()), "a file of a slot that is killed must not stay"
    inbox.begin(2)
    inbox.add(2, 1, [b"0123456789"])
    assert inbox.take(2, 1, ()) == [b"0123456789"]
    assert [bytes(block) for block in blocks] == [b"12345", b"678", b"abcdef"]


def test_blocks_of_earlier_runs_are_discarded() -> None:
    inbox = Inbox(1 << 20)
    inbox.begin(1)
    inbox.add(1, 1, [b"old"])
    inbox.complete(1, 0, 0)
    inbox.add(2, 1, [b"early"])
    inbox.complete(2, 0, 0)
    inbox.begin(2)
    inbox.add(1, 1, [b"late"])
    inbox.complete(1, 0, 1)
    assert inbox.take(2, 1, {(0, 0)}) == [b"early"]


def test_a_lost_slot_ends_the_wait() -> None:
    inbox = Inbox(1 << 20)
    inbox.begin(1)
    inbox.lose(PeerLost(1, "it was closed"))
    with pytest.raises(PeerLost, match="slot 1 broke: it was closed"):
        inbox.take(1, 1, {(0, 1)})
