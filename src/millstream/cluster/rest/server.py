"""The REST server of this process: the application on a socket, in a thread of its own.

Promises: the server listens when `start` returns, on the first free port of a range; an address that is in use is an
error that names it; the thread ends with the process.
Does not know: what is served."""

from __future__ import annotations

import logging
import socket
import threading
from typing import Any

import uvicorn
from fastapi import FastAPI

from millstream import options
from millstream.cluster.rest.security import Tls
from millstream.errors import ExternalError, UserError

_log = logging.getLogger("millstream.rest")

# requests on more connections are refused with status 503; each connection holds a file descriptor
_MOST_CONNECTIONS = 512
_STOP_SECONDS = 30.0
_KEY = options.REST_TLS.key
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class AddressInUse(ExternalError):
    """No port of the range is free."""

    def __init__(self, host: str, ports: str, problem: OSError) -> None:
        super().__init__(
            f"the REST server cannot listen on {host}:{ports}: {problem}",
            hint="set rest.bind-port to another port or range",
        )


class NotLoopback(UserError):
    """The server would be reachable from other machines."""

    def __init__(self, host: str) -> None:
        super().__init__(
            f"the REST server cannot listen on {host}: other machines could reach it, and it has no token",
            hint="set millstream.rest.token-file to a file with a token (it is created if it does not exist), or leave "
            "rest.bind-address at 127.0.0.1",
        )


class RestServer:
    """A running server; `address` is its URL."""

    def __init__(self, server: uvicorn.Server, thread: threading.Thread, address: str) -> None:
        self._server, self._thread = server, thread
        self.address = address

    @classmethod
    def start(
        cls, application: FastAPI, host: str, ports: str, *, has_token: bool = False, tls: Tls | None = None
    ) -> RestServer:
        """Serve an application on the first free port of a range such as "8081" or "8081-8090"; 0 is any port.

        With `tls`, connections are encrypted.

        Raises:
            AddressInUse: No port is free.
            NotLoopback: The address is one that other machines reach, and the application has no token.

        """
        if host not in _LOOPBACK and not has_token:
            raise NotLoopback(host)
        if host not in _LOOPBACK and tls is None:
            _log.warning("%s: other machines reach this server, and connections are not encrypted; see %s", host, _KEY)
        listener = _listen(host, ports)
        encryption: dict[str, Any] = {} if tls is None else {"ssl_certfile": tls.certificate, "ssl_keyfile": tls.key}
        configuration = uvicorn.Config(
            application,
            log_config=None,
            access_log=False,
            lifespan="off",
            limit_concurrency=_MOST_CONNECTIONS,
            **encryption,
        )
        server = uvicorn.Server(configuration)
        application.state.is_stopping = lambda: server.should_exit  # streams end, and the server does not wait for them
        thread = threading.Thread(target=server.run, args=([listener],), name="rest-server", daemon=True)
        thread.start()
        port = listener.getsockname()[1]
        scheme = "http" if tls is None else "https"
        return cls(server, thread, f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}")

    def stop(self) -> None:
        """Stop listening and end the thread."""
        self._server.should_exit = True
        self._thread.join(_STOP_SECONDS)


def _listen(host: str, ports: str) -> socket.socket:
    first, _, last = ports.partition("-")
    problem: OSError | None = None
    for port in range(int(first), int(last or first) + 1):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as refused:
            listener.close()
            problem = refused
        else:
            listener.listen(128)  # listen before the thread starts, so that early clients wait and are not refused
            return listener
    assert problem is not None
    raise AddressInUse(host, ports, problem)
