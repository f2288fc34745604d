"""A schema registry for tests: the documented REST protocol, in memory.

    with running_registry() as url:
        format_named("avro-confluent", row_type, {"url": url, "subject": "orders-value"})

Promises: answers like Confluent's registry, on a free port of the loopback interface; stops with the `with` block.
Does not know: compatibility of schemas, except that the subject `closed` refuses every schema."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

_CONTENT = "application/vnd.schemaregistry.v1+json"


class Registry(ThreadingHTTPServer):
    """The server of a registry, with its schemas by id and by subject.

    Attributes:
        requests: The method and path of every request.
        credentials: The Authorization header of every request.
        authorization: If set, requests with another Authorization header are refused.
        broken: Whether every request fails with status 500.
        redirect: If set, the address to which clients are redirected.

    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.schemas: list[str] = []
        self.subjects: dict[str, list[int]] = {}
        self.requests: list[tuple[str, str]] = []
        self.authorization: str | None = None
        self.broken = False
        self.redirect: str | None = None
        self.credentials: list[str | None] = []

    @property
    def url(self) -> str:
        """The address of the registry."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Registry

    def do_GET(self) -> None:
        """Answer a GET request."""
        self._answer("GET")

    def do_POST(self) -> None:
        """Answer a POST request."""
        self._answer("POST")

    def _answer(self, method: str) -> None:
        registry = self.server
        registry.requests.append((method, self.path))
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        registry.credentials.append(self.headers.get("Authorization"))
        if registry.redirect is not None and not self.path.startswith("/moved"):
            return self._redirect(registry.redirect + self.path)
        if registry.broken:
            return self._send(500, {"error_code": 50001, "message": "error in the backend data store"})
        if registry.authorization is not None and self.headers.get("Authorization") != registry.authorization:
            return self._send(401, {"error_code": 401, "message": "unauthorized"})
        match method, [unquote(part) for part in self.path.removeprefix("/moved").strip("/").split("/")]:
            case "GET", ["schemas", "ids", number]:
                if not number.isdigit() or not 0 < int(number) <= len(registry.schemas):
                    return self._send(404, {"error_code": 40403, "message": "schema not found"})
                return self._send(200, {"schema": registry.schemas[int(number) - 1]})
            case "POST", ["subjects", subject, "versions"]:
                return self._register(subject, json.loads(body)["schema"])
            case "GET", ["subjects", subject, "versions", "latest"]:
                if subject not in registry.subjects:
                    return self._send(404, {"error_code": 40401, "message": f"subject '{subject}' not found"})
                newest = registry.subjects[subject][-1]
                version = {"subject": subject, "id": newest, "version": len(registry.subjects[subject])}
                return self._send(200, {**version, "schema": registry.schemas[newest - 1]})
        return self._send(404, {"error_code": 404, "message": "HTTP 404 Not Found"})

    def _register(self, subject: str, schema: str) -> None:
        registry = self.server
        try:
            json.loads(schema)
        except ValueError:
            return self._send(422, {"error_code": 42201, "message": "invalid Avro schema"})
        if subject == "closed":
            return self._send(409, {"error_code": 409, "message": "schema being registered is incompatible"})
        if schema not in registry.schemas:
            registry.schemas.append(schema)
        number = registry.schemas.index(schema) + 1
        if number not in registry.subjects.setdefault(subject, []):
            registry.subjects[subject].append(number)
        return self._send(200, {"id": number})

    def _redirect(self, target: str) -> None:
        self.send_response(302)
        self.send_header("Location", target)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _send(self, status: int, content: Any) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", _CONTENT)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@contextmanager
def registry() -> Iterator[Registry]:
    """Start a registry; it stops with the `with` block."""
    server = Registry()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def running_registry() -> Iterator[str]:
    """Start a registry and return its address; it stops with the `with` block."""
    with registry() as server:
        yield server.url
