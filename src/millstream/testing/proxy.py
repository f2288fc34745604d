"""A TCP proxy on loopback for a link that misbehaves: silent, slow, narrow, lossy or cut.

Promises: bytes arrive in order and unchanged, or not at all; a silent link holds what it has not passed on, as the
sender's system does when a network drops packets, and passes it on when it is mended; no more than one piece is held
for each direction of a connection. Everything ends with the `with` block.
Does not know: what travels. A partition of hosts is the work of `millstream.testing.network`.

    with Proxy("127.0.0.1", 5432) as proxy:
        connect to 127.0.0.1 at proxy.port
        proxy.silence()          # both ways, or only "up" to the server or "down" to the client
        proxy.mend()"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

Way = Literal["up", "down"]
BOTH: tuple[Way, ...] = ("up", "down")

_PIECE = 1 << 16  # bytes that are passed on at once
_LOOK = 0.02  # seconds between two looks at a link on which nothing moves
_AGAIN = 0.2  # seconds after which a lost packet is sent again
_MOST = 256  # connections at a time
_LINGER = struct.pack("ii", 1, 0)  # a socket with this is reset, not closed


@dataclass(frozen=True)
class Link:
    """How the link is now. `silent` are the ways on which nothing is passed on; `delay` is in seconds, `rate` in bytes
    per second, `loss` the share of pieces that must be sent again; `refuses`: new connections are reset."""

    silent: frozenset[Way] = frozenset()
    delay: float = 0.0
    rate: float | None = None
    loss: float = 0.0
    refuses: bool = False


@dataclass
class _Connection:
    client: socket.socket
    server: socket.socket
    pumps: list[threading.Thread] = field(default_factory=list)
    working: int = 2


class Proxy:
    """Passes connections on to a server at `host` and `port`."""

    def __init__(self, host: str, port: int, seed: int = 0) -> None:
        self._server = (host, port)
        self._chance: Any = np.random.default_rng([seed, 11])
        self._link = Link()
        self._lock = threading.Lock()
        self._connections: list[_Connection] = []
        self._stopped = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(_LOOK)
        self.port: int = self._listener.getsockname()[1]
        self.passed = {"up": 0, "down": 0}
        self._thread = threading.Thread(target=self._accept, name="proxy", daemon=True)

    def __enter__(self) -> Proxy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        self._listener.close()
        with self._lock:
            pumps = [pump for connection in self._connections for pump in connection.pumps]
        self.reset()
        for pump in pumps:
            pump.join()

    # ----------------------------------------------------------------------------------------------- misbehaviour

    def silence(self, *ways: Way) -> None:
        """Pass nothing on any more, on these ways or on both; connections stay open and new ones are accepted."""
        self._link = replace(self._link, silent=self._link.silent | frozenset(ways or BOTH))

    def slow_down(self, *, delay: float = 0.0, rate: float | None = None, loss: float = 0.0) -> None:
        """Pass on late, at most so much in a second, or lose some."""
        self._link = replace(self._link, delay=delay, rate=rate, loss=loss)

    def refuse(self) -> None:
        """Reset new connections."""
        self._link = replace(self._link, refuses=True)

    def reset(self) -> None:
        """Reset every open connection, on both sides."""
        with self._lock:
            open_ones = list(self._connections)
        for connection in open_ones:
            for end in (connection.client, connection.server):
                with contextlib.suppress(OSError):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER)
                    end.shutdown(socket.SHUT_RD)
                with contextlib.suppress(OSError):
                    end.close()

    def mend(self) -> None:
        """Be a good link again."""
        self._link = Link()

    @property
    def open(self) -> int:
        """How many connections there are."""
        return len(self._connections)

    # ----------------------------------------------------------------------------------------------------- passing

    def _accept(self) -> None:
        while not self._stopped.is_set():
            try:
                client, _ = self._listener.accept()
            except TimeoutError:
                continue
            if self._link.refuses or len(self._connections) >= _MOST:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER)
                client.close()
                continue
            try:
                server = socket.create_connection(self._server, timeout=5)
            except OSError:
                client.close()
                continue
            self._pass_on(client, server)

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        connection = _Connection(client, server)
        for end in (client, server):
            end.settimeout(_LOOK)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for way, source, target in (("up", client, server), ("down", server, client)):
            pump = threading.Thread(
                target=self._pump, args=(connection, way, source, target), name=f"proxy-{way}", daemon=True
            )
            connection.pumps.append(pump)
        with self._lock:
            self._connections.append(connection)
            for pump in connection.pumps:
                pump.start()

    def _pump(self, connection: _Connection, way: Way, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):  # reset, or closed on the other side
            while not self._stopped.is_set():
                if way in self._link.silent:
                    time.sleep(_LOOK)
                    continue
                try:
                    piece = source.recv(_PIECE)
                except TimeoutError:
                    continue
                self._travel(way, len(piece))
                if self._stopped.is_set():
                    break
                if not piece:
                    target.shutdown(socket.SHUT_WR)
                    break
                self._send(target, piece)
                self.passed[way] += len(piece)
        with self._lock:
            connection.working -= 1
            if not connection.working:
                connection.client.close()
                connection.server.close()
                self._connections.remove(connection)

    def _travel(self, way: Way, size: int) -> None:
        """Take the time that a piece takes."""
        link = self._link
        until = time.monotonic() + link.delay + (size / link.rate if link.rate else 0.0)
        while link.loss and self._chance.random() < link.loss:
            until += _AGAIN
        while not self._stopped.is_set() and (way in self._link.silent or time.monotonic() < until):
            time.sleep(min(_LOOK, max(0.0, until - time.monotonic())) or _LOOK)

    def _send(self, target: socket.socket, piece: bytes) -> None:
        """All of it, for as long as it takes."""
        left = memoryview(piece)
        while left and not self._stopped.is_set():
            with contextlib.suppress(TimeoutError):
                left = left[target.send(left) :]
