"""The context of the handlers of the gateway.

Promises: sessions, time and the completion of statements are arguments.
Does not know: handlers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from millstream.cluster.rest.token import Access
from millstream.gateway.sessions import Sessions
from millstream.sql.catalog.catalog import Catalogs
from millstream.times import Clock

VERSIONS = ("v1", "v2", "v3", "v4")

Complete = Callable[[str, int, Catalogs], list[str]]


@dataclass(frozen=True)
class GatewayContext:
    """The sessions of a gateway, its clock, the function that completes a statement at a position, and the token that
    requests must have, if any."""

    sessions: Sessions
    clock: Clock
    complete: Complete
    token: Access | str | None = None
