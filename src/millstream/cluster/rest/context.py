"""The context of the handlers of REST requests.

Promises: time, ids and jobs are arguments.
Does not know: handlers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from starlette.types import ASGIApp

from millstream.cluster.dispatcher import Dispatcher
from millstream.cluster.log_lines import LogLines
from millstream.cluster.rest.session_view import SessionView
from millstream.cluster.rest.token import Access
from millstream.config.configuration import Configuration
from millstream.times import Clock


@dataclass(frozen=True)
class RestContext:
    """The jobs of this process, its clock, a source of random ids, and the tokens of the server, if it has some.
    `session` is the session cluster whose jobs are served, too; `mounted` are applications of other layers, by path;
    `log_lines` are those of this process; `configuration` is that of the server."""

    dispatcher: Dispatcher
    clock: Clock
    new_id: Callable[[], str]
    token: Access | str | None = None
    session: SessionView | None = None
    mounted: Mapping[str, ASGIApp] = field(default_factory=dict)
    log_lines: LogLines = field(default_factory=LogLines)
    configuration: Configuration = field(default_factory=Configuration)
