"""A client of a REST server."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from millstream.client.remote import RemoteCluster, Unreachable
from millstream.cluster.session import driver


@pytest.fixture
def dying_server() -> Iterator[str]:
    """The address of a server that ends each connection in the middle of its answer."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with client:
                client.recv(1 << 16)
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n")

    thread = threading.Thread(target=serve)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    listener.shutdown(socket.SHUT_RDWR)
    thread.join()
    listener.close()


def test_a_server_that_dies_while_it_answers_is_unreachable(dying_server: str) -> None:
    with pytest.raises(Unreachable):
        RemoteCluster(dying_server).list_jobs()


def test_a_session_cluster_lists_its_jobs_while_a_program_dies(dying_server: str) -> None:
    process: Any = SimpleNamespace(address=dying_server, token="t")
    assert driver._ask_for_jobs(process) == []
