"""A real Redis server for these tests: the one on the path, or the one in a jar of Maven Central."""

from __future__ import annotations

import platform
import shutil
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from millstream.testing.maven import retrieve_cached

_JAR = ("com.github.codemonstur", "embedded-redis", "1.4.3")
_SYSTEMS = {"linux": "linux", "darwin": "darwin"}
_MACHINES = {"x86_64": "amd64", "amd64": "amd64", "arm64": "arm64", "aarch64": "arm64"}


def redis_server(directory: Path) -> str:
    """Return a program `redis-server`."""
    if on_path := shutil.which("redis-server"):
        return on_path
    folder = retrieve_cached(f"embedded-redis-{_JAR[2]}", _JAR, alone=True)
    ending = f"{_SYSTEMS[sys.platform]}-{_MACHINES[platform.machine().lower()]}"
    with zipfile.ZipFile(folder / f"{_JAR[1]}-{_JAR[2]}.jar") as jar:
        name = next(name for name in jar.namelist() if "redis-server-" in name and name.endswith(ending))
        jar.extract(name, directory)
    program = directory / name
    program.chmod(0o700)
    return str(program)


@pytest.fixture(scope="session")
def redis_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a server on loopback, with the password `sesame`."""
    client_package = pytest.importorskip("redis")
    directory = tmp_path_factory.mktemp("redis")
    program = redis_server(directory)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(directory)]
    server = subprocess.Popen([*command, "--requirepass", "sesame"], stdout=subprocess.DEVNULL)
    try:
        with client_package.Redis(port=port, password="sesame") as client:
            while True:
                try:
                    client.ping()
                    break
                except (client_package.ConnectionError, client_package.BusyLoadingError):
                    assert server.poll() is None, "the server did not start"
        yield port
    finally:
        server.terminate()
        server.wait(30)


@pytest.fixture
def client(redis_port: int) -> Iterator[Any]:
    """A client of an empty server."""
    import redis

    with redis.Redis(port=redis_port, password="sesame", decode_responses=True) as made:
        made.flushall()
        yield made
