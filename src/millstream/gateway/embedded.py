"""The gateway as a part of another server: the SQL workspace of the web UI.

Promises: the embedding server checks tokens and origins; unused sessions are closed.
Does not know: that server."""

from __future__ import annotations

import threading
from collections.abc import Callable

from fastapi import FastAPI

from millstream import sql_options
from millstream.config.configuration import Configuration
from millstream.gateway.application import create_application
from millstream.gateway.context import Complete, GatewayContext
from millstream.gateway.sessions import SessionLimits, Sessions
from millstream.times import Clock


def create_embedded(
    configuration: Configuration, clock: Clock, new_id: Callable[[], str], complete: Complete
) -> FastAPI:
    """Return the application of a gateway, and start a thread that closes idle sessions.

    Args:
        configuration: The options of the gateway, which are the defaults of sessions, too.
        clock: The clock.
        new_id: Returns a new random UUID as text.
        complete: Returns the completions of a statement at a position.

    """
    idle = configuration.get(sql_options.GATEWAY_IDLE_TIMEOUT).to_milliseconds() / 1000
    sessions = Sessions(
        configuration, SessionLimits(configuration.get(sql_options.GATEWAY_MAX_SESSIONS), idle or None), clock, new_id
    )
    check_seconds = configuration.get(sql_options.GATEWAY_CHECK_INTERVAL).to_milliseconds() / 1000
    never = threading.Event()  # the thread ends with the process

    def close_idle_sessions() -> None:
        while not never.wait(check_seconds):
            sessions.expire()

    threading.Thread(target=close_idle_sessions, name="workspace-sessions", daemon=True).start()
    return create_application(GatewayContext(sessions, clock, complete), is_embedded=True)
