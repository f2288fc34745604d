"""Gathers the connections of the slots of a stage: each slot sends its index after it was authenticated.

Promises: `wait` returns when all expected slots are connected, or raises; connections that are refused, and slots that
are not expected, change nothing. After `close`, no connection is accepted.
Does not know: what slots do."""

from __future__ import annotations

import logging
import struct
import threading
import time
from collections.abc import Collection, Iterable
from socket import socket

from millstream.engine.spark.resident.wire import Channel, ConnectionRefused, Frame, Listener, authenticate
from millstream.errors import ExternalError

HELLO = 2  # the type of the first frame
INDEX = struct.Struct("<I")

_log = logging.getLogger("millstream.spark")


class SlotsMissing(ExternalError):
    """Some slots of a stage have not connected in time."""

    def __init__(self, missing: Collection[int], seconds: float) -> None:
        self.missing = sorted(missing)
        slots = ", ".join(map(str, self.missing[:10]))
        super().__init__(f"{len(self.missing)} resident slots have not connected within {seconds:g} s: {slots}")


class Gathering:
    """Accepts connections at `listeners` until all `expected` slots have one."""

    def __init__(self, listeners: Iterable[Listener], secret: bytes, expected: Iterable[int]) -> None:
        self._listeners, self._secret = list(listeners), secret
        self._expected = frozenset(expected)
        self._changed = threading.Condition()
        self._channels: dict[int, Channel] = {}
        self._problem: Exception | None = None
        self._is_closed = False
        for listener in self._listeners:
            threading.Thread(target=self._accept, args=(listener,), name="resident-accept", daemon=True).start()

    def wait(self, seconds: float) -> dict[int, Channel]:
        """Return the connections by slot. If it raises, all of them are closed."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while missing := self._expected - self._channels.keys():
                remaining = deadline - time.monotonic()
                problem = self._problem or (SlotsMissing(missing, seconds) if remaining <= 0 else None)
                if problem is not None:
                    self._problem = problem
                    for channel in self._channels.values():
                        channel.close()
                    raise problem
                self._changed.wait(remaining)
            return dict(self._channels)

    def fail(self, problem: Exception) -> None:
        """Make the waiting caller raise this error."""
        with self._changed:
            self._problem = self._problem or problem
            self._changed.notify_all()

    def close(self) -> None:
        """Accept no more connections."""
        self._is_closed = True
        for listener in self._listeners:
            listener.close()

    def _accept(self, listener: Listener) -> None:
        while not self._is_closed:
            try:
                accepted = listener.socket.accept()[0]
            except OSError:
                return
            # a thread for each connection, because one that does not answer must not delay the others
            threading.Thread(target=self._greet, args=(accepted,), name="resident-greet", daemon=True).start()

    def _greet(self, accepted: socket) -> None:
        try:
            channel = authenticate(accepted, self._secret, is_server=True)
            (slot,) = INDEX.unpack(channel.receive().blocks[0])
        except (ConnectionRefused, OSError, EOFError, struct.error) as problem:
            _log.warning("%s", problem)
            accepted.close()
            return
        with self._changed:
            if self._problem is not None or slot not in self._expected or slot in self._channels:
                _log.warning("slot %s is connected already, or comes too late; its connection is closed", slot)
                channel.close()
                return
            self._channels[slot] = channel
            self._changed.notify_all()


def greet(channel: Channel, slot: int) -> Channel:
    """Send the index of this slot, as the first frame of a connection."""
    channel.send(Frame(HELLO, blocks=(INDEX.pack(slot),)))
    return channel
