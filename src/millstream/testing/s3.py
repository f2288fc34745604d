"""An S3 server on loopback for tests, and a front that answers as a store under load does.

    with s3_server() as url, FaultyStore(url, seed=1) as store:
        subprocess.run(command, env=client_variables(store.url))

Promises: the server is moto's, which honours conditional writes, in a process of its own; the front passes requests on
unchanged, or answers 503 `SlowDown` or 500 `InternalError` in place of the server, or after the server has carried the
request out, or late. What goes wrong is drawn from a seed. Everything ends with the `with` block.
Does not know: what is stored."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from urllib.parse import urlsplit

import numpy as np

from millstream.errors import ExternalError, UserError
from millstream.testing.guarded import guarded

_START_SECONDS = 60
_ERRORS = {500: "InternalError", 503: "SlowDown"}
_SKIPPED = frozenset({"connection", "transfer-encoding", "content-length", "date", "server"})


class NoServer(UserError):
    """The packages of the S3 server are not installed."""

    def __init__(self) -> None:
        super().__init__("there is no S3 server to test with", hint="pip install moto flask flask-cors s3fs")


class ServerNotStarted(ExternalError):
    """The S3 server does not answer."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"the S3 server has not answered for {seconds:g} s", hint="start `python -m moto.server` by hand"
        )


@contextmanager
def s3_server() -> Iterator[str]:
    """The address of an S3 server that has nothing yet."""
    if any(find_spec(name) is None for name in ("moto", "flask", "flask_cors", "s3fs")):
        raise NoServer
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with subprocess.Popen(  # the end of the block closes its standard input
        guarded(command), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
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


def client_variables(url: str) -> dict[str, str]:
    """The environment in which clients find a server. They repeat a request once, not four times as by default, so
    that some errors reach the job."""
    return {
        **os.environ,
        "AWS_ACCESS_KEY_ID": "id",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": url,
        "AWS_MAX_ATTEMPTS": "2",
    }


@dataclass(frozen=True)
class Rates:
    """Which shares of the requests are refused before the server sees them, which are carried out and answered with an
    error, and which are answered late; lists are later than others. In a storm, all requests are refused."""

    refused: float = 0.03
    answer_lost: float = 0.04
    late: float = 0.05
    late_lists: float = 0.3
    storm: float = 0.01
    seconds: float = 0.5  # that a late answer takes; a storm takes twice as long


class FaultyStore:
    """Passes requests on to the server at `url`, with faults; `injected` counts them."""

    def __init__(self, url: str, seed: int, rates: Rates | None = None) -> None:
        self._server = urlsplit(url)
        self._rates = rates or Rates()
        self._chance = np.random.default_rng([seed, 29])
        self._lock = threading.Lock()
        self._storm_until = 0.0
        self.injected: Counter[str] = Counter()
        self._front = _Front(self)

    @property
    def url(self) -> str:
        """Where clients find it."""
        return f"http://127.0.0.1:{self._front.server_address[1]}"

    def __enter__(self) -> FaultyStore:
        threading.Thread(target=self._front.serve_forever, name="faulty-store", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._front.shutdown()
        self._front.server_close()

    def fault(self, method: str, path: str) -> str | None:
        """What goes wrong with a request; None if nothing does."""
        is_list = method == "GET" and "list-type=" in path
        with self._lock:
            drawn, rates = float(self._chance.random()), self._rates
            now = time.monotonic()
            if now < self._storm_until:
                fault = "refused"
            elif drawn < rates.storm:
                self._storm_until = now + 2 * rates.seconds
                fault = "refused"
            else:
                late = rates.late_lists if is_list else rates.late
                shares = {"refused": rates.refused, "answer lost": rates.answer_lost, "late": late}
                bounds = np.cumsum(list(shares.values())) + rates.storm
                index = int(np.searchsorted(bounds, drawn, side="right"))
                if index == len(shares):
                    return None
                fault = list(shares)[index]
            self.injected["late list" if fault == "late" and is_list else fault] += 1
            return fault

    def status(self) -> int:
        """The error that a client gets."""
        with self._lock:
            return 503 if self._chance.random() < 0.7 else 500

    def late(self) -> None:
        """Let the time of a late answer pass."""
        time.sleep(self._rates.seconds)

    def forward(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        """The server's answer: status, headers, body."""
        connection = http.client.HTTPConnection(str(self._server.hostname), self._server.port, timeout=60)
        try:
            connection.request(method, path, body, dict(headers))
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()


class _Front(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, store: FaultyStore) -> None:
        self.store = store
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, *_: object) -> None:
        """Log nothing: clients are killed on purpose."""


class _Handler(BaseHTTPRequestHandler):
    server: _Front
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer."""
        self._answer()

    do_PUT = do_POST = do_HEAD = do_DELETE = do_GET

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def _answer(self) -> None:
        store = self.server.store
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fault = store.fault(self.command, self.path)
        if fault == "refused":
            return self._fail()
        if fault == "late":
            store.late()
        status, headers, content = store.forward(self.command, self.path, dict(self.headers.items()), body)
        if fault == "answer lost":
            return self._fail()
        return self._send(status, headers, content)

    def _fail(self) -> None:
        status = self.server.store.status()
        error = f"<Code>{_ERRORS[status]}</Code><Message>Reduce your request rate.</Message>"
        text = f"<?xml version='1.0'?><Error>{error}</Error>"
        self._send(status, [("Content-Type", "application/xml")], text.encode())

    def _send(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        with suppress(OSError):  # the client did not wait, or was killed
            self.send_response(status)
            for name, value in headers:
                if name.lower() not in _SKIPPED:
                    self.send_header(name, value)
            length = {name.lower(): value for name, value in headers}.get("content-length", "0")
            self.send_header("Content-Length", length if self.command == "HEAD" and not content else str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)
