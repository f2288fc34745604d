"""An S3 server on loopback for tests.

    with s3_server() as url:
        subprocess.run(command, env=list_client_variables(url))

Promises: the server is moto's, which honours conditional writes, in a process of its own, which ends with the `with`
block.
Does not know: what is stored."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec

from millstream.errors import ExternalError, UserError
from millstream.testing.guarded import build_guarded_command

_START_SECONDS = 60


class NoServer(UserError):
    """The packages of the S3 server are not installed."""

    def __init__(self) -> None:
        super().__init__(
            "the packages of the S3 server are not installed", hint="pip install moto flask flask-cors s3fs"
        )


class ServerNotStarted(ExternalError):
    """The S3 server does not answer."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"the S3 server did not answer within {seconds:g} s", hint="run `python -m moto.server` to see why"
        )


@contextmanager
def s3_server() -> Iterator[str]:
    """Start an empty S3 server and return its address; it stops with the `with` block.

    Raises:
        NoServer: The packages of the server are not installed.
        ServerNotStarted: The server does not answer.

    """
    if any(find_spec(name) is None for name in ("moto", "flask", "flask_cors", "s3fs")):
        raise NoServer
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(  # the end of the block closes the server's standard input, which stops it
        build_guarded_command(command), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        _wait_for(port, process)
        yield f"http://127.0.0.1:{port}"


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        time.sleep(0.05)
    raise ServerNotStarted(_START_SECONDS)


def list_client_variables(url: str) -> dict[str, str]:
    """Return the environment variables with which S3 clients use a server.

    Clients repeat a request once, not four times as by default, so that some errors reach the job."""
    return {
        **os.environ,
        "AWS_ACCESS_KEY_ID": "id",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": url,
        "AWS_MAX_ATTEMPTS": "2",
    }
