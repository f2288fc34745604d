"""A TCP proxy on loopback that simulates a bad link: silent, slow, with little bandwidth, with losses, or reset.

Promises: bytes arrive in order and unchanged, or not at all. A silent link keeps the bytes that it has not forwarded,
at most one chunk for each direction of a connection, and forwards them after a repair, as a TCP stack does when packets
are lost. The proxy stops with the `with` block.
Does not know: the protocol. For partitions between hosts, see `millstream_chaos.machine.network`.

    with Proxy("127.0.0.1", 5432) as proxy:
        connect to 127.0.0.1 at proxy.port
        proxy.silence()          # in both directions, or only "up" to the server or "down" to the client
        proxy.repair()"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

Direction = Literal["up", "down"]
BOTH: tuple[Direction, ...] = ("up", "down")

_CHUNK = 1 << 16  # bytes that are forwarded at once
_POLL = 0.02  # seconds between two checks of a silent link
_RETRANSMIT = 0.2  # seconds after which a lost packet is sent again
_MAX_CONNECTIONS = 256
_LINGER = struct.pack("ii", 1, 0)  # with this option, a closed socket is reset


@dataclass(frozen=True)
class Link:
    """The state of the link.

    Attributes:
        silent: The directions in which nothing is forwarded.
        delay: The delay in seconds.
        rate: The bandwidth in bytes per second.
        loss: The share of chunks that must be sent again.
        refuses: Whether new connections are reset.

    """

    silent: frozenset[Direction] = frozenset()
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
    """Forwards connections to a server at `host` and `port`."""

    def __init__(self, host: str, port: int, seed: int = 0) -> None:
        self._server = (host, port)
        self._chance: Any = np.random.default_rng([seed, 11])
        self._link = Link()
        self._lock = threading.Lock()
        self._connections: list[_Connection] = []
        self._stopped = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(_POLL)
        self.port: int = self._listener.getsockname()[1]
        self.forwarded = {"up": 0, "down": 0}
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

    # ----------------------------------------------------------------------------------------------------- faults

    def silence(self, *directions: Direction) -> None:
        """Stop forwarding in these directions or in both; connections stay open and new ones are accepted."""
        self._link = replace(self._link, silent=self._link.silent | frozenset(directions or BOTH))

    def slow_down(self, *, delay: float = 0.0, rate: float | None = None, loss: float = 0.0) -> None:
        """Forward with a delay, a limited bandwidth or losses."""
        self._link = replace(self._link, delay=delay, rate=rate, loss=loss)

    def refuse(self) -> None:
        """Reset new connections."""
        self._link = replace(self._link, refuses=True)

    def reset(self) -> None:
        """Reset every open connection, on both sides."""
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            for end in (connection.client, connection.server):
                with contextlib.suppress(OSError):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER)
                    end.shutdown(socket.SHUT_RD)
                with contextlib.suppress(OSError):
                    end.close()

    def repair(self) -> None:
        """Remove all faults of the link."""
        self._link = Link()

    @property
    def connection_count(self) -> int:
        """The number of open connections."""
        return len(self._connections)

    # -------------------------------------------------------------------------------------------------- forwarding

    def _accept(self) -> None:
        while not self._stopped.is_set():
            try:
                client, _ = self._listener.accept()
            except TimeoutError:
                continue
            if self._link.refuses or len(self._connections) >= _MAX_CONNECTIONS:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER)
                client.close()
                continue
            try:
                server = socket.create_connection(self._server, timeout=5)
            except OSError:
                client.close()
                continue
            self._forward(client, server)

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        connection = _Connection(client, server)
        for end in (client, server):
            end.settimeout(_POLL)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for direction, source, target in (("up", client, server), ("down", server, client)):
            pump = threading.Thread(
                target=self._pump, args=(connection, direction, source, target), name=f"proxy-{direction}", daemon=True
            )
            connection.pumps.append(pump)
        with self._lock:
            self._connections.append(connection)
            for pump in connection.pumps:
                pump.start()

    def _pump(
        self, connection: _Connection, direction: Direction, source: socket.socket, target: socket.socket
    ) -> None:
        with contextlib.suppress(OSError):  # reset, or closed on the other side
            while not self._stopped.is_set():
                if direction in self._link.silent:
                    time.sleep(_POLL)
                    continue
                try:
                    chunk = source.recv(_CHUNK)
                except TimeoutError:
                    continue
                self._delay(direction, len(chunk))
                if self._stopped.is_set():
                    break
                if not chunk:
                    target.shutdown(socket.SHUT_WR)
                    break
                self._send(target, chunk)
                self.forwarded[direction] += len(chunk)
        with self._lock:
            connection.working -= 1
            if not connection.working:
                connection.client.close()
                connection.server.close()
                self._connections.remove(connection)

    def _delay(self, direction: Direction, size: int) -> None:
        """Wait as long as a chunk takes on this link."""
        link = self._link
        until = time.monotonic() + link.delay + (size / link.rate if link.rate else 0.0)
        while link.loss and self._chance.random() < link.loss:
            until += _RETRANSMIT
        while not self._stopped.is_set() and (direction in self._link.silent or time.monotonic() < until):
            time.sleep(min(_POLL, max(0.0, until - time.monotonic())) or _POLL)

    def _send(self, target: socket.socket, chunk: bytes) -> None:
        """Send a whole chunk, however long it takes."""
        rest = memoryview(chunk)
        while rest and not self._stopped.is_set():
            with contextlib.suppress(TimeoutError):
                rest = rest[target.send(rest) :]
