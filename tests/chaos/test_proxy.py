"""The proxy of the fault tests silences, delays, resets and refuses connections, and never changes bytes."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from millstream_chaos.machine.proxy import Proxy


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of an echo server."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer(client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            while data := client.recv(1 << 16):
                client.sendall(data)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=answer, args=(client,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()[1]
    listener.close()


def connected(proxy: Proxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=5)


def first_byte(proxy: Proxy) -> bytes:
    with connected(proxy) as client:
        return client.recv(1)


def receive(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (piece := client.recv(1 << 16)):
        data += piece
    return data


def test_bytes_arrive_in_order_and_unchanged(echo: int) -> None:
    sent = bytes(range(256)) * 2000
    with Proxy("127.0.0.1", echo) as proxy, connected(proxy) as client:
        threading.Thread(target=client.sendall, args=(sent,), daemon=True).start()
        assert receive(client, len(sent)) == sent
        while proxy.forwarded != {"up": len(sent), "down": len(sent)}:  # counted after it was sent
            time.sleep(0.01)


@pytest.mark.parametrize("ways", [(), ("up",), ("down",)])
def test_a_silent_link_keeps_bytes_until_it_is_repaired(echo: int, ways: tuple) -> None:
    with Proxy("127.0.0.1", echo) as proxy, connected(proxy) as client:
        client.sendall(b"one")
        assert receive(client, 3) == b"one"
        proxy.silence(*ways)
        client.sendall(b"two")
        client.settimeout(0.15)
        with pytest.raises(TimeoutError):
            client.recv(3)
        proxy.repair()
        client.settimeout(5)
        assert receive(client, 3) == b"two"


def test_a_slow_link_delays_bytes(echo: int) -> None:
    with Proxy("127.0.0.1", echo) as proxy, connected(proxy) as client:
        proxy.slow_down(delay=0.1, rate=10_000)
        began = time.monotonic()
        client.sendall(b"x" * 1000)
        assert len(receive(client, 1000)) == 1000
        assert time.monotonic() - began >= 0.4  # 0.1 for the delay and 0.1 for the bytes, both ways


def test_a_lossy_link_delivers_all_bytes_late(echo: int) -> None:
    with Proxy("127.0.0.1", echo, seed=3) as proxy, connected(proxy) as client:
        proxy.slow_down(loss=0.7)
        began = time.monotonic()
        client.sendall(b"again")
        assert receive(client, 5) == b"again"
        assert time.monotonic() - began >= 0.2


def test_after_a_reset_the_client_gets_an_error_and_can_reconnect(echo: int) -> None:
    with Proxy("127.0.0.1", echo) as proxy:
        with connected(proxy) as client:
            client.sendall(b"one")
            assert receive(client, 3) == b"one"
            proxy.reset()
            with pytest.raises(ConnectionError):
                assert client.recv(1) != b"", "closed, not reset"
        with connected(proxy) as client:
            client.sendall(b"two")
            assert receive(client, 3) == b"two"


def test_refused_connections_end_immediately(echo: int) -> None:
    with Proxy("127.0.0.1", echo) as proxy:
        proxy.refuse()
        with pytest.raises(ConnectionError):
            first_byte(proxy)


def test_a_closed_proxy_leaves_no_threads_or_sockets(echo: int) -> None:
    with Proxy("127.0.0.1", echo) as proxy, connected(proxy) as client:
        client.sendall(b"one")
        proxy.silence()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("proxy")]
