"""The REST server of this process: the application on a socket, in a thread of its own.

Promises: the server listens when `start` returns, on the first free port of a range; an address that is in use is an
error that names it; the thread ends with the process.
Does not know: what is served."""

from __future__ import annotations

import socket
import threading

import uvicorn
from fastapi import FastAPI

from millstream.errors import ExternalError, UserError

_STOP_SECONDS = 30.0
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
    def start(cls, application: FastAPI, host: str, ports: str, *, has_token: bool = False) -> RestServer:
        """Serve an application on the first free port of a range such as "8081" or "8081-8090"; 0 is any port.

        Raises:
            AddressInUse: No port is free.
            NotLoopback: The address is one that other machines reach, and the application has no token.

        """
        if host not in _LOOPBACK and not has_token:
            raise NotLoopback(host)
        listener = _listen(host, ports)
        configuration = uvicorn.Config(application, log_config=None, access_log=False, lifespan="off")
        server = uvicorn.Server(configuration)
        thread = threading.Thread(target=server.run, args=([listener],), name="rest-server", daemon=True)
        thread.start()
        port = listener.getsockname()[1]
        return cls(server, thread, f"http://{f'[{host}]' if ':' in host else host}:{port}")

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
            listener.listen(128)  # at once: clients wait for the server, and are not refused
            return listener
    assert problem is not None
    raise AddressInUse(host, ports, problem)
