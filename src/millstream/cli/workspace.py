"""The SQL workspace of the web UI: a SQL gateway inside the REST server of this process.

Promises: the table API is imported with the first request only.
Does not know: statements, requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millstream.client import local
from millstream.config.configuration import Configuration

PATH = "/sql"


def add_workspace(settings: Mapping[str, str]) -> None:
    """Serve the workspace; its sessions have these options. Call it before the REST server is started."""
    local.add_application(PATH, lambda: create_workspace(settings))


def create_workspace(settings: Mapping[str, str]) -> Any:
    """Return the ASGI application."""
    from millstream.cli.gateway import complete_at
    from millstream.cluster import entrypoint
    from millstream.gateway.embedded import create_embedded

    configuration = Configuration.from_dict(dict(settings))
    return create_embedded(configuration, entrypoint.SystemClock(), entrypoint.new_uuid, complete_at)
