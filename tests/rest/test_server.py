"""The server: addresses, ports, and requests of other sites."""

from __future__ import annotations

import contextlib
import http.client

import pytest
from fastapi import FastAPI
from rest_cluster import Cluster

from millstream.cluster import entrypoint
from millstream.cluster.rest.server import AddressInUse, NotLoopback, RestServer
from millstream.config.configuration import Configuration


def ask(cluster: Cluster, path: str, **headers: str) -> int:
    connection = http.client.HTTPConnection(cluster.address.removeprefix("http://"))
    with contextlib.closing(connection):
        connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        return connection.getresponse().status


def test_requests_of_other_sites_are_refused(cluster: Cluster) -> None:
    own = cluster.address.removeprefix("http://")
    cancel = f"/jobs/{cluster.job}/yarn-cancel"
    assert ask(cluster, "/jobs", Host="evil.example") == 421
    assert ask(cluster, cancel, Origin="http://evil.example") == 403
    assert ask(cluster, cancel, Sec_Fetch_Site="cross-site") == 403
    assert ask(cluster, "/jobs", Origin=f"http://{own}", Sec_Fetch_Site="same-origin") == 200
    assert cluster.client.get_job_status().result().name in ("CREATED", "RUNNING")


def test_the_first_free_port_of_a_range() -> None:
    first = RestServer.start(FastAPI(), "127.0.0.1", "0")
    try:
        port = int(first.address.rpartition(":")[2])
        with pytest.raises(AddressInUse, match=f"127.0.0.1:{port}"):
            RestServer.start(FastAPI(), "127.0.0.1", str(port))
        second = RestServer.start(FastAPI(), "127.0.0.1", f"{port}-{port + 20}")
        second.stop()
        assert int(second.address.rpartition(":")[2]) > port
    finally:
        first.stop()


def test_other_machines_cannot_reach_it() -> None:
    with pytest.raises(NotLoopback):
        RestServer.start(FastAPI(), "0.0.0.0", "0")


def test_a_job_with_a_port_starts_the_server_of_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entrypoint, "_servers", servers := [])
    assert entrypoint.serve(Configuration()) is None
    address = entrypoint.serve(Configuration.from_dict({"rest.bind-port": "0"}))
    assert address == servers[0].address
    assert entrypoint.serve(Configuration.from_dict({"rest.bind-port": "0"})) == address
    servers[0].stop()
