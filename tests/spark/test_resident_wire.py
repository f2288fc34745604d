"""Frames and the authentication of connections, on real sockets."""

from __future__ import annotations

import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from millstream.engine.spark.resident.wire import (
    NOT_ENDED,
    SMALL,
    Channel,
    ConnectionRefused,
    Frame,
    Listener,
    authenticate,
    connect,
)

SECRET = b"s" * 32


def accept_one(listener: Listener, secret: bytes, outcome: list[object]) -> threading.Thread:
    def accept() -> None:
        try:
            outcome.append(authenticate(listener.socket.accept()[0], secret, is_server=True))
        except ConnectionRefused as problem:
            outcome.append(problem)

    thread = threading.Thread(target=accept)
    thread.start()
    return thread


@pytest.mark.parametrize("listen", [Listener.on_host, lambda: Listener.on_network("127.0.0.1")])
def test_both_ends_exchange_frames(listen) -> None:
    listener = listen()
    accepted: list[Channel] = []
    thread = accept_one(listener, SECRET, accepted)
    client = connect(listener.address, SECRET)
    thread.join()
    listener.close()
    frames = [
        Frame(1),
        Frame(1, 2, 3, 4),
        Frame(5, 6, 7, NOT_ENDED, (b"one",)),
        Frame(1, 2, 3, 4, (b"", b"two", b"three" * 1000)),
        Frame(1, 2, 3, NOT_ENDED, (os.urandom(SMALL + 1),)),
    ]
    sender = threading.Thread(target=lambda: [client.send(frame) for frame in frames])
    sender.start()
    received = [accepted[0].receive() for _ in frames]
    sender.join()
    for frame, expected in zip(received, frames, strict=True):
        assert (frame.kind, frame.run, frame.level, frame.ended) == (
            expected.kind,
            expected.run,
            expected.level,
            expected.ended,
        )
        assert list(frame.blocks) == list(expected.blocks)
    client.close()
    with pytest.raises(EOFError):
        accepted[0].receive()
    accepted[0].close()


@pytest.mark.parametrize(("server", "client"), [(SECRET, b"x" * 32), (b"x" * 32, SECRET)])
def test_a_wrong_secret_is_refused_at_both_ends(server: bytes, client: bytes) -> None:
    listener = Listener.on_host()
    outcome: list[object] = []
    thread = accept_one(listener, server, outcome)
    with pytest.raises(ConnectionRefused):
        connect(listener.address, client)
    thread.join()
    listener.close()
    assert isinstance(outcome[0], ConnectionRefused)


def test_an_answer_that_repeats_the_proof_of_the_server_is_refused() -> None:
    listener = Listener.on_host()
    outcome: list[object] = []
    thread = accept_one(listener, SECRET, outcome)
    mirror = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mirror.connect(listener.address.removeprefix("unix:"))
    for _ in range(2):
        mirror.sendall(mirror.recv(32, socket.MSG_WAITALL))
    thread.join()
    mirror.close()
    listener.close()
    assert isinstance(outcome[0], ConnectionRefused)


def test_a_unix_socket_is_for_its_owner_and_is_removed() -> None:
    listener = Listener.on_host()
    directory = Path(listener.address.removeprefix("unix:")).parent
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    listener.close()
    assert not directory.exists()
