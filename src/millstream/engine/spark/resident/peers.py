"""The exchange of one slot: sends blocks to other slots, and continuously reads their blocks.

Promises: a slot that sends reads at the same time, in another thread, so two slots that send much to one another never
wait for each other. Small blocks are sent together; the end of a level is sent with the last of them.
Does not know: levels and channels of a program, see `routes`."""

from __future__ import annotations

import selectors
import threading
from collections.abc import Iterable, Mapping

from millstream.engine.spark.resident.inbox import Inbox, PeerLost
from millstream.engine.spark.resident.wire import NOT_ENDED, SMALL, Channel, Frame

BLOCKS = 1  # the kind of the frames between slots


class Peers:
    """The connections of slot `slot` to others."""

    def __init__(self, slot: int, channels: Mapping[int, Channel], inbox: Inbox) -> None:
        self._slot, self._channels, self._inbox = slot, channels, inbox
        self._waiting: dict[tuple[int, int], list[bytes]] = {}  # by target slot and level
        self._sizes: dict[tuple[int, int], int] = {}
        if channels:
            selector = selectors.DefaultSelector()
            for peer, channel in channels.items():  # here, because the thread may begin after they were closed
                selector.register(channel, selectors.EVENT_READ, peer)
            threading.Thread(target=self._read, args=(selector,), name="resident-peers", daemon=True).start()

    def send(self, run: int, level: int, target: int, block: bytes) -> None:
        """Send a block for a level to a slot, now or with the next ones."""
        if target == self._slot:
            self._inbox.add(run, level, (block,))
            return
        key = (target, level)
        if len(block) >= SMALL:
            self._flush(run, key)
            self._send(target, Frame(BLOCKS, run, level, NOT_ENDED, (block,)))
            return
        self._waiting.setdefault(key, []).append(block)
        self._sizes[key] = self._sizes.get(key, 0) + len(block)
        if self._sizes[key] >= SMALL:
            self._flush(run, key)

    def complete(self, run: int, level: int, targets: Iterable[int]) -> None:
        """Send what waits, and that this slot has completed a level, to the slots that read from it."""
        pending = {key[0]: key for key in self._waiting}  # one frame for each target says that the level is complete
        for key in [key for key in self._waiting if pending[key[0]] != key]:
            self._flush(run, key)
        for target in targets:
            if target == self._slot:
                self._inbox.complete(run, level, target)
            else:
                key = pending.pop(target, (target, 0))
                blocks = self._take(key)
                self._send(target, Frame(BLOCKS, run, key[1], level, blocks))
        for key in pending.values():
            self._flush(run, key)

    def _flush(self, run: int, key: tuple[int, int]) -> None:
        if blocks := self._take(key):
            self._send(key[0], Frame(BLOCKS, run, key[1], NOT_ENDED, blocks))

    def _take(self, key: tuple[int, int]) -> list[bytes]:
        self._sizes.pop(key, None)
        return self._waiting.pop(key, [])

    def _send(self, target: int, frame: Frame) -> None:
        try:
            self._channels[target].send(frame)
        except OSError as problem:
            raise PeerLost(target, str(problem)) from None

    def _read(self, selector: selectors.BaseSelector) -> None:
        with selector:
            while selector.get_map():
                for key, _ in selector.select():
                    slot, channel = key.data, self._channels[key.data]
                    try:
                        frame = channel.receive()
                    except (OSError, EOFError) as problem:
                        selector.unregister(channel)
                        self._inbox.lose(PeerLost(slot, str(problem) or "it was closed"))
                        continue
                    self._accept(slot, frame)

    def _accept(self, slot: int, frame: Frame) -> None:
        try:
            if frame.blocks:
                self._inbox.add(frame.run, frame.level, frame.blocks)
        except OSError as problem:  # no disk space for blocks that do not fit into memory
            self._inbox.lose(PeerLost(slot, f"its blocks cannot be written to disk: {problem}"))
        if frame.ended != NOT_ENDED:
            self._inbox.complete(frame.run, frame.ended, slot)
