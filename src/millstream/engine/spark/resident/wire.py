"""Frames on authenticated sockets: how slots of a stage talk to one another and to the driver.

Promises: a connection carries frames only after both ends have proved that they know the secret of the stage, within a
time limit; the secret itself is never sent. A frame is read with two system calls, however large it is. Frames of one
connection arrive in order.
Does not know: what frames contain, who connects to whom.

The proof is a challenge by HMAC-SHA256 in both directions. `multiprocessing.connection` has one as well, but with MD5
on Python 3.11, and it reads a large message in pieces: a reader then waits for the interpreter lock after each
piece."""

from __future__ import annotations

import hmac
import secrets
import shutil
import socket
import struct
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from millstream.errors import ExternalError

NOT_ENDED = 0xFFFF
SMALL = 1 << 16  # bytes; smaller blocks are sent together

_HEADER = struct.Struct("<BHHIIQ")  # kind, level, ended, run, number of blocks, bytes
_LENGTH = struct.Struct("<Q")
_NONCE = 32  # bytes, of a challenge as of an answer
_HANDSHAKE_SECONDS = 10.0
_KEEPALIVE = (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 4))
_UNIX, _TCP = "unix:", "tcp:"


class ConnectionRefused(ExternalError):
    """The other end of a connection does not know the secret of the stage, or has not answered in time."""

    hint = "another program may use the address; nothing that it sent was read"

    def __init__(self, reason: str) -> None:
        super().__init__(f"a connection between slots was refused: {reason}")


@dataclass(frozen=True, slots=True)
class Frame:
    """Blocks for one level of a run. `ended` is the level that the sender has just completed, or `NOT_ENDED`."""

    kind: int
    run: int = 0
    level: int = 0
    ended: int = NOT_ENDED
    blocks: Sequence[bytes] = ()


class Channel:
    """One end of a connection. `send` and `receive` may be called from two threads."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        if connected.family != socket.AF_UNIX:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in _KEEPALIVE:
                if hasattr(socket, name):
                    connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def fileno(self) -> int:
        """Return the descriptor, for selectors."""
        return self.socket.fileno()

    def send(self, frame: Frame) -> None:
        """Send a frame; waits while the other end does not read."""
        blocks = frame.blocks
        size = sum(map(len, blocks))
        header = _HEADER.pack(frame.kind, frame.level, frame.ended, frame.run, len(blocks), size)
        if len(blocks) == 1 and size >= SMALL:
            self.socket.sendall(header)
            self.socket.sendall(blocks[0])
            return
        lengths = () if len(blocks) < 2 else (_LENGTH.pack(len(block)) for block in blocks)
        self.socket.sendall(b"".join((header, *lengths, *blocks)))

    def receive(self) -> Frame:
        """Wait for a frame; raises `EOFError` when the other end has closed the connection."""
        kind, level, ended, run, count, size = _HEADER.unpack(self._read(_HEADER.size))
        if not count:
            return Frame(kind, run, level, ended)
        if count == 1:
            return Frame(kind, run, level, ended, (self._read(size),))
        body = self._read(size + count * _LENGTH.size)
        blocks, at = [], count * _LENGTH.size
        for (length,) in _LENGTH.iter_unpack(memoryview(body)[:at]):
            blocks.append(body[at : at + length])
            at += length
        return Frame(kind, run, level, ended, blocks)

    def _read(self, size: int) -> bytes:
        data = self.socket.recv(size, socket.MSG_WAITALL) if size else b""
        if len(data) == size:
            return data
        parts = [data]  # the system returns at most 2 GiB at once
        remaining = size - len(data)
        while remaining:
            part = self.socket.recv(remaining, socket.MSG_WAITALL) if parts[-1] else b""
            if not part:
                raise EOFError
            parts.append(part)
            remaining -= len(part)
        return b"".join(parts)

    def close(self) -> None:
        """Close the connection: the other end reads the end of the stream."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


class Listener:
    """A socket that accepts connections of one stage; `address` is what `connect` takes."""

    def __init__(self, listening: socket.socket, address: str, directory: str | None = None) -> None:
        self.socket, self.address, self._directory = listening, address, directory

    @classmethod
    def on_host(cls) -> Listener:
        """Listen on a Unix socket in a directory to which only this user has access."""
        directory = tempfile.mkdtemp(prefix="millstream-slot-")
        path = str(Path(directory, "socket"))
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(path)
        listening.listen(socket.SOMAXCONN)
        return cls(listening, _UNIX + path, directory)

    @classmethod
    def on_network(cls, host: str, bind: str | None = None) -> Listener:
        """Listen on a free port of the interface that Spark uses."""
        family = socket.getaddrinfo(bind or host, None, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((bind or host, 0), family=family, backlog=socket.SOMAXCONN)
        return cls(listening, f"{_TCP}{host}:{listening.getsockname()[1]}")

    def close(self) -> None:
        """Stop listening; open connections stay."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits in accept()
        self.socket.close()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)


def connect(address: str, secret: bytes) -> Channel:
    """Connect to a listener."""
    if address.startswith(_UNIX):
        connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connected.connect(address.removeprefix(_UNIX))
    else:
        host, _, port = address.removeprefix(_TCP).rpartition(":")
        connected = socket.create_connection((host, int(port)), _HANDSHAKE_SECONDS)
    return authenticate(connected, secret, is_server=False)


def authenticate(connected: socket.socket, secret: bytes, *, is_server: bool) -> Channel:
    """Prove to the other end that this process knows the secret, and verify the proof of the other end. The other end
    raises `ConnectionRefused` if this process does not know the secret."""
    connected.settimeout(_HANDSHAKE_SECONDS)
    channel = Channel(connected)
    nonce, role, other_role = secrets.token_bytes(_NONCE), b"client", b"server"
    if is_server:
        role, other_role = other_role, role
    try:
        connected.sendall(nonce)
        other_nonce = channel._read(_NONCE)
        connected.sendall(hmac.digest(secret, role + nonce + other_nonce, "sha256"))
        if not hmac.compare_digest(
            channel._read(_NONCE), hmac.digest(secret, other_role + other_nonce + nonce, "sha256")
        ):
            msg = "it does not know the secret of the stage"
            raise ConnectionRefused(msg)
    except (OSError, EOFError) as problem:
        channel.close()
        reason = str(problem) or "it was closed before it was authenticated"
        raise ConnectionRefused(reason) from None
    except ConnectionRefused:
        channel.close()
        raise
    connected.settimeout(None)
    return channel
