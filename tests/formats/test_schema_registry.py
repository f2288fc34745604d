"""The client of a schema registry keeps its credentials to itself, and every answer is a value or a declared error."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from millstream.errors import ExternalError, MillstreamError, UserError
from millstream.formats.schema_registry import RedirectRefused, RegistryUnreachable, SchemaRegistry
from millstream.testing.schema_registry import Registry, registry

BASIC = "Basic YWxpY2U6c2VjcmV0"


def _has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.fixture
def server() -> Iterator[Registry]:
    with registry() as running:
        running.schemas.append('"string"')
        yield running


@pytest.fixture
def other() -> Iterator[Registry]:
    with registry() as running:
        running.schemas.append('"long"')
        yield running


def test_a_redirect_to_another_server_is_refused(server: Registry, other: Registry) -> None:
    server.redirect = other.url
    with pytest.raises(RedirectRefused, match="the redirect is not followed, because requests contain credentials"):
        SchemaRegistry(server.url, user_info="alice:secret").schema(1)
    assert server.credentials == [BASIC]
    assert other.requests == []


def test_another_name_of_the_same_machine_is_another_server(server: Registry) -> None:
    server.redirect = server.url.replace("127.0.0.1", "localhost") + "/moved"
    with pytest.raises(RedirectRefused):
        SchemaRegistry(server.url, bearer_token="secret").schema(1)


def test_a_redirect_within_the_server_is_followed(server: Registry) -> None:
    server.redirect = server.url + "/moved"
    assert SchemaRegistry(server.url, user_info="alice:secret").schema(1) == '"string"'
    assert server.credentials == [BASIC, BASIC]


def test_credentials_of_one_url_are_not_sent_to_another(server: Registry, other: Registry) -> None:
    server.broken = True
    named = server.url.replace("http://", "http://alice:secret@")
    assert SchemaRegistry(f"{named},{other.url}").schema(1) == '"long"'
    assert (server.credentials, other.credentials) == ([BASIC], [None])


@pytest.mark.parametrize("url", ["http://", "http://h:99999", "http://[", "ftp://h", "http://u:secret@h:x", "h:8081"])
def test_an_invalid_url_is_refused_without_showing_its_password(url: str) -> None:
    with pytest.raises(UserError, match="is not the address of a schema registry") as caught:
        SchemaRegistry(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("address", ["[::1]:1", "[::1]", "[fe80::1]:8081"])
def test_an_address_of_ipv6_keeps_its_brackets(address: str) -> None:
    asking = SchemaRegistry(f"http://alice:secret@{address}/path/", deadline=0.2)
    with pytest.raises(RegistryUnreachable, match=re.escape(f"http://{address}/path ")) as caught:
        asking.schema(1)
    assert "secret" not in str(caught.value)


@pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6")
def test_a_registry_is_reached_over_ipv6() -> None:
    with _answering(HEAD + b'\r\n{"schema": "\\"string\\""}', "::1") as url:
        assert SchemaRegistry(url).schema(1) == '"string"'


@contextmanager
def _answering(data: bytes, host: str = "127.0.0.1") -> Iterator[str]:
    """A server that sends the same bytes to whoever asks."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(data)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://{f'[{host}]' if family == socket.AF_INET6 else host}:{listening.getsockname()[1]}"
        thread.join()


HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"", RegistryUnreachable),
        (b"SSH-2.0-OpenSSH\r\n", RegistryUnreachable),
        (HEAD + b"Content-Length: 99\r\n\r\n{", RegistryUnreachable),
        (HEAD + b"\r\n" + b"[" * 100_000, RegistryUnreachable),
        (HEAD + b"\r\n" + b"1" * 10_000, RegistryUnreachable),
        (HEAD + b"\r\n\xff\xfe", RegistryUnreachable),
        (HEAD + b"\r\n{}", ExternalError),
        (HEAD + b'\r\n{"schema": 3}', ExternalError),
        (b"HTTP/1.1 404 No\r\nContent-Length: 9\r\n\r\n[", MillstreamError),
        (b"HTTP/1.1 302 Found\r\nLocation: http://[\r\nContent-Length: 0\r\n\r\n", RegistryUnreachable),
    ],
)
def test_any_response_gives_a_declared_error(answer: bytes, error: type[Exception]) -> None:
    with _answering(answer) as url, pytest.raises(error):
        SchemaRegistry(url, deadline=5).schema(1)
