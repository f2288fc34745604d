"""What the handlers of REST requests need.

Promises: time, ids and jobs are arguments.
Does not know: handlers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from millstream.cluster.dispatcher import Dispatcher
from millstream.cluster.rest.session_view import SessionView
from millstream.times import Clock


@dataclass(frozen=True)
class RestContext:
    """The jobs of this process, its clock, a source of random ids, and the token of the server, if it has one.
    `session` is the session cluster whose jobs are served, too."""

    dispatcher: Dispatcher
    clock: Clock
    new_id: Callable[[], str]
    token: str | None = None
    session: SessionView | None = None
