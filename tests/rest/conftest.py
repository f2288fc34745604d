"""Fixtures of the tests of REST resources."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from rest_cluster import Cluster, start_job

from millstream.cluster import entrypoint
from millstream.cluster.rest.application import create_application
from millstream.cluster.rest.context import RestContext
from millstream.cluster.rest.server import RestServer


@pytest.fixture
def cluster(tmp_path: Path, inline_engine: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A running job behind a REST server, in this process."""
    monkeypatch.setattr(entrypoint, "DISPATCHER", entrypoint.Dispatcher())
    client = start_job(tmp_path, "sums")
    numbers = itertools.count()
    context = RestContext(entrypoint.DISPATCHER, entrypoint.SystemClock(), lambda: f"{next(numbers):032x}")
    server = RestServer.start(create_application(context), "127.0.0.1", "0")
    yield Cluster(server.address, client, tmp_path)
    server.stop()
    client.cancel()
    client.wait(30)
