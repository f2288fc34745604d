"""An object store under load: a proxy in front of an S3 server that refuses requests, and delays and loses responses.

    with s3_server() as url, FaultyStore(url, seed=1) as store:
        subprocess.run(command, env=list_client_variables(store.url))

Promises: requests are passed on unchanged, or answered with 503 `SlowDown` or 500 `InternalError` instead of by the
server or after the server has carried them out, or answered late. Faults are drawn from a seed.
Does not know: what is stored."""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import numpy as np

_ERRORS = {500: "InternalError", 503: "SlowDown"}
_SKIPPED = frozenset({"connection", "transfer-encoding", "content-length", "date", "server"})


@dataclass(frozen=True)
class Rates:
    """The probabilities of faults of a request.

    Attributes:
        refused: The request is refused and not forwarded.
        answer_lost: The server carries the request out, but the client gets an error.
        late: The response is late.
        late_lists: The response to a list request is late.
        storm: A storm begins, in which all requests are refused.
        seconds: The delay of a late response; a storm takes twice as long.

    """

    refused: float = 0.03
    answer_lost: float = 0.04
    late: float = 0.05
    late_lists: float = 0.3
    storm: float = 0.01
    seconds: float = 0.5


class FaultyStore:
    """Forwards requests to the server at `url`, with faults; `injected` counts the faults."""

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
        """The address for clients."""
        return f"http://127.0.0.1:{self._front.server_address[1]}"

    def __enter__(self) -> FaultyStore:
        threading.Thread(target=self._front.serve_forever, name="faulty-store", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._front.shutdown()
        self._front.server_close()

    def draw_fault(self, method: str, path: str) -> str | None:
        """Draw the fault of a request; None for no fault."""
        is_list = method == "GET" and "list-type=" in path
        with self._lock:
            number, rates = float(self._chance.random()), self._rates
            now = time.monotonic()
            if now < self._storm_until:
                fault = "refused"
            elif number < rates.storm:
                self._storm_until = now + 2 * rates.seconds
                fault = "refused"
            else:
                late = rates.late_lists if is_list else rates.late
                shares = {"refused": rates.refused, "answer lost": rates.answer_lost, "late": late}
                bounds = np.cumsum(list(shares.values())) + rates.storm
                index = int(np.searchsorted(bounds, number, side="right"))
                if index == len(shares):
                    return None
                fault = list(shares)[index]
            self.injected["late list" if fault == "late" and is_list else fault] += 1
            return fault

    def draw_status(self) -> int:
        """Draw the status of an error response."""
        with self._lock:
            return 503 if self._chance.random() < 0.7 else 500

    def wait_late(self) -> None:
        """Wait for the delay of a late response."""
        time.sleep(self._rates.seconds)

    def forward(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        """Send a request to the server and return status, headers and body of its response."""
        connection = http.client.HTTPConnection(str(self._server.hostname), self._server.port, timeout=60)
        try:
            connection.request(method, path, body, dict(headers))
            response = connection.getresponse()
            return response.status, response.getheaders(), response.read()
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
        fault = store.draw_fault(self.command, self.path)
        if fault == "refused":
            return self._fail()
        if fault == "late":
            store.wait_late()
        status, headers, content = store.forward(self.command, self.path, dict(self.headers.items()), body)
        if fault == "answer lost":
            return self._fail()
        return self._send(status, headers, content)

    def _fail(self) -> None:
        status = self.server.store.draw_status()
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
