"""Server-sent events of what a page of the web UI shows."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from fastapi import FastAPI
from rest_cluster import Cluster

from millstream.cluster import entrypoint
from millstream.cluster.rest import live_updates
from millstream.cluster.rest.application import create_application
from millstream.cluster.rest.context import RestContext
from millstream.cluster.rest.server import RestServer

Connection = http.client.HTTPConnection


def follow(address: str, *paths: str, **headers: str) -> tuple[Connection, http.client.HTTPResponse]:
    connection = Connection(address.removeprefix("http://"), timeout=30)
    connection.request("GET", "/millstream/live?" + "&".join(f"path={path}" for path in paths), headers=headers)
    return connection, connection.getresponse()


def events(answer: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    for line in answer:
        if line.startswith(b"data: "):
            yield json.loads(line[6:])


def test_resources_are_sent_when_they_change(cluster: Cluster) -> None:
    job, unknown = f"jobs/{cluster.job}", f"jobs/{'0' * 32}/exceptions"
    connection, answer = follow(cluster.address, job, unknown, "overview")
    with closing(connection):
        assert answer.headers.get_content_type() == "text/event-stream"
        received = events(answer)
        first = {event["path"]: event for event in (next(received) for _ in range(3))}
        assert first[job]["answer"]["name"] == "sums"
        assert (first[unknown]["status"], list(first[unknown]["answer"])) == (404, ["errors"])
        assert first["overview"]["answer"].keys() == cluster.get("/overview").keys()
        cluster.client.cancel()
        states = (event["answer"]["state"] for event in received if event["path"] == job)
        assert any(state == "CANCELED" for state in states)


@pytest.mark.parametrize("path", ["jobs/../config", "/overview", f"jobs/{'0' * 32}/yarn-cancel", "config?x", "jars"])
def test_only_resources_can_be_followed(cluster: Cluster, path: str) -> None:
    connection, answer = follow(cluster.address, path)
    with closing(connection):
        assert (answer.status, list(json.load(answer))) == (400, ["errors"])


def test_streams_need_the_token_and_end_with_the_server() -> None:
    context = RestContext(entrypoint.Dispatcher(), entrypoint.SystemClock(), entrypoint.new_id, "the token")
    server = RestServer.start(create_application(context), "127.0.0.1", "0", has_token=True)
    connection, answer = follow(server.address, "jobs/overview")
    with closing(connection):
        assert answer.status == 401
    connection, answer = follow(server.address, "jobs/overview", Authorization="Bearer the token")
    with closing(connection):
        assert next(events(answer))["answer"] == {"jobs": []}
        begin = time.monotonic()
        server.stop()
        assert list(events(answer)) == []
        assert time.monotonic() - begin < 20, "the server waited for the reader"


def test_streams_are_bounded_and_forgotten_with_their_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_updates, "_MOST_STREAMS", 1)
    context = RestContext(entrypoint.Dispatcher(), entrypoint.SystemClock(), entrypoint.new_id)
    application: FastAPI = create_application(context)
    server = RestServer.start(application, "127.0.0.1", "0")
    try:
        connection, first = follow(server.address, "overview")
        next(events(first))
        refused_connection, refused = follow(server.address, "overview")
        with closing(refused_connection):
            assert refused.status == 503
        first.close()
        connection.close()
        for _ in range(100):
            connection, answer = follow(server.address, "overview")
            with closing(connection):
                if answer.status == 200:
                    break
            time.sleep(0.1)
        else:
            pytest.fail("a reader that is gone still counts")
    finally:
        server.stop()
