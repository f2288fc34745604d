"""Serves Flink's own dashboard for a cluster, from the files of an installed Flink.

Promises: the server listens on loopback only. It serves the files of the dashboard from a jar of Flink, and passes all
other requests of its pages on to the cluster, with the token of the user. Requests that another site made are refused.
Does not know: the command line. The files are not part of this package: they are read where Flink is installed."""

from __future__ import annotations

import mimetypes
import os
import threading
import zipfile
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit

from millstream.client.remote import RemoteCluster, Unreachable
from millstream.errors import UserError

_FOLDER = "web/"
_DISTRIBUTION = "apache-flink-libraries"
_PATTERNS = ("flink-dist*.jar", "flink-runtime-web*.jar")
_MOST_BYTES = 100 << 20  # the maximum size of an upload
_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1"})


class NoFlink(UserError):
    """Flink's files cannot be found."""

    def __init__(self) -> None:
        super().__init__(
            "Flink's dashboard is not installed here",
            hint=f"pip install --no-deps {_DISTRIBUTION}, or set FLINK_HOME to the folder of a Flink",
        )


def find_jar() -> Path:
    """Return the jar with the dashboard: of FLINK_HOME, or of the installed package.

    Raises:
        NoFlink: There is none.

    """
    folders = [Path(home) / "lib"] if (home := os.environ.get("FLINK_HOME")) else []
    with suppress(metadata.PackageNotFoundError):
        folders.append(Path(str(metadata.distribution(_DISTRIBUTION).locate_file("pyflink/lib"))))
    for jar in (jar for folder in folders for pattern in _PATTERNS for jar in sorted(folder.glob(pattern))):
        with zipfile.ZipFile(jar) as archive:
            if f"{_FOLDER}index.html" in archive.namelist():
                return jar
    raise NoFlink


class FlinkWeb:
    """The dashboard on a port of this machine; `address` is its URL."""

    def __init__(self, jar: Path, cluster: RemoteCluster, port: int = 0) -> None:
        archive = zipfile.ZipFile(jar)
        names = frozenset(archive.namelist())
        lock = threading.Lock()

        def read(path: str) -> bytes | None:
            name = _FOLDER + (path.lstrip("/") or "index.html")
            if name not in names or name.endswith("/"):
                return None
            with lock:
                return archive.read(name)

        self._server = ThreadingHTTPServer(("127.0.0.1", port), _create_handler(read, cluster))
        self._server.daemon_threads = True
        self._archive = archive
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, name="flink-web", daemon=True).start()

    def stop(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._archive.close()


def _create_handler(read: Callable[[str], bytes | None], cluster: RemoteCluster) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _handle(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            if not _is_local(self) or length > _MOST_BYTES:
                self._send(403, "application/json", b'{"errors": ["the request is refused"]}')
                self.close_connection = True
                return
            body = self.rfile.read(length)
            path = urlsplit(self.path).path
            content = read(path) if self.command == "GET" else None
            if content is not None:
                media_type = mimetypes.guess_type(path)[0] or (
                    "text/html" if path == "/" else "application/octet-stream"
                )
                self._send(200, media_type, content)
                return
            try:
                self._send(*cluster.pass_on(self.command, self.path, body, self.headers.get("Content-Type")))
            except Unreachable as problem:
                self._send(502, "text/plain", str(problem).encode())

        def _send(self, status: int, media_type: str, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("X-Content-Type-Options", "nosniff")
            with suppress(ConnectionError):  # the browser has left the page
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _handle

    return Handler


def _is_local(request: BaseHTTPRequestHandler) -> bool:
    """Whether a request was made by a page of this server, or by no page."""
    host = request.headers.get("Host", "")
    origin = request.headers.get("Origin")
    site = request.headers.get("Sec-Fetch-Site", "none")
    return (
        urlsplit(f"//{host}").hostname in _LOCAL_NAMES
        and (origin is None or urlsplit(origin).netloc == host)
        and site in ("none", "same-origin")
    )
