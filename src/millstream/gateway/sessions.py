"""The sessions of a gateway.

Promises: a session that was not used for the idle timeout is closed, unless one of its statements is running; the
number of sessions is bounded.
Does not know: HTTP, statements."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from millstream.config.configuration import Configuration
from millstream.gateway.errors import NoSuchSession, TooManySessions
from millstream.gateway.session import Session
from millstream.times import Clock


@dataclass(frozen=True)
class SessionLimits:
    """The maximum number of sessions, and the seconds that a session may be idle; None for no limit."""

    max_sessions: int = 1_000
    idle_timeout: float | None = 600.0


class Sessions:
    """The open sessions. The methods may be called from any thread."""

    def __init__(self, defaults: Configuration, limits: SessionLimits, clock: Clock, new_id: Callable[[], str]) -> None:
        self._defaults, self._limits, self._clock, self._new_id = defaults, limits, clock, new_id
        self._lock = threading.Lock()
        self._sessions: dict[str, Session] = {}

    def open(self, name: str | None, properties: Mapping[str, str]) -> Session:
        """Open a session.

        Raises:
            TooManySessions: No more sessions can be opened.

        """
        self.expire()
        with self._lock:
            if len(self._sessions) >= self._limits.max_sessions:
                raise TooManySessions(self._limits.max_sessions)
            session = Session(self._new_id(), name, self._defaults, properties, self._clock, self._new_id)
            self._sessions[session.handle] = session
            return session

    def get(self, handle: str) -> Session:
        """Return a session, and reset its idle timeout.

        Raises:
            NoSuchSession: There is none, or it has expired.

        """
        self.expire()
        with self._lock:
            session = self._sessions.get(handle)
        if session is None:
            raise NoSuchSession(handle)
        session.last_access = self._clock.precise()
        return session

    def close(self, handle: str) -> None:
        """Close a session."""
        session = self.get(handle)
        with self._lock:
            self._sessions.pop(handle, None)
        session.close()

    def close_all(self) -> None:
        """Close all sessions."""
        with self._lock:
            sessions, self._sessions = list(self._sessions.values()), {}
        for session in sessions:
            session.close()

    def expire(self) -> None:
        """Close the sessions that were idle for too long."""
        timeout = self._limits.idle_timeout
        if timeout is None:
            return
        oldest = self._clock.precise() - timeout
        with self._lock:
            expired = [
                session
                for session in self._sessions.values()
                if session.last_access < oldest and not session.has_active_operation()
            ]
            for session in expired:
                del self._sessions[session.handle]
        for session in expired:
            session.close()
