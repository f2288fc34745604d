"""A running gateway: the application on a socket, and a thread that closes idle sessions.

Promises: the gateway listens when `start` returns; `stop` closes all sessions.
Does not know: the command line."""

from __future__ import annotations

import threading
from collections.abc import Callable

from millstream import sql_options
from millstream.cluster.rest.security import Security
from millstream.cluster.rest.server import RestServer
from millstream.config.configuration import Configuration
from millstream.gateway.application import create_application
from millstream.gateway.context import Complete, GatewayContext
from millstream.gateway.sessions import SessionLimits, Sessions
from millstream.times import Clock


class Gateway:
    """A running gateway; `address` is its URL."""

    def __init__(self, server: RestServer, sessions: Sessions, check_seconds: float) -> None:
        self.address = server.address
        self._server, self._sessions = server, sessions
        self._stopped = threading.Event()
        self._check_seconds = check_seconds
        threading.Thread(target=self._close_idle_sessions, name="gateway-sessions", daemon=True).start()

    @classmethod
    def start(
        cls,
        configuration: Configuration,
        clock: Clock,
        new_id: Callable[[], str],
        complete: Complete,
        security: Security | None = None,
    ) -> Gateway:
        """Start a gateway.

        Args:
            configuration: The options of the gateway, which are the defaults of sessions, too.
            clock: The clock.
            new_id: Returns a new random UUID as text.
            complete: Returns the completions of a statement at a position.
            security: The tokens that requests must have, and the certificate.

        Raises:
            AddressInUse: The port is not free.
            NotLoopback: The address is one that other machines reach, and there is no token.

        """
        idle = configuration.get(sql_options.GATEWAY_IDLE_TIMEOUT).to_milliseconds() / 1000
        limits = SessionLimits(configuration.get(sql_options.GATEWAY_MAX_SESSIONS), idle or None)
        sessions = Sessions(configuration, limits, clock, new_id)
        protection = security or Security()
        access = protection.access  # a reader cannot open a session
        application = create_application(GatewayContext(sessions, clock, complete, access))
        address = configuration.get(sql_options.GATEWAY_ADDRESS)
        port = str(configuration.get(sql_options.GATEWAY_PORT))
        server = RestServer.start(application, address, port, has_token=access is not None, tls=protection.tls)
        return cls(server, sessions, configuration.get(sql_options.GATEWAY_CHECK_INTERVAL).to_milliseconds() / 1000)

    def stop(self) -> None:
        """Stop listening and close all sessions."""
        self._stopped.set()
        self._server.stop()
        self._sessions.close_all()

    def _close_idle_sessions(self) -> None:
        while not self._stopped.wait(self._check_seconds):
            self._sessions.expire()
