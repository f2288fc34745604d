"""Sessions of the gateway: properties, completion, limits, expiry, closing."""

from __future__ import annotations

import http.client
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from gateway_client import GatewayClient

from millstream.cli.gateway import start_gateway
from millstream.cluster.rest.server import NotLoopback
from millstream.config.configuration import Configuration
from millstream.gateway.errors import NoSuchSession, TooManySessions
from millstream.gateway.server import Gateway
from millstream.gateway.sessions import SessionLimits, Sessions


class Clock:
    time = 0.0

    def now(self) -> int:
        return round(self.time * 1000)

    def precise(self) -> float:
        return self.time


def test_the_gateway_returns_its_name_and_release(client: GatewayClient) -> None:
    assert client.request("GET", "/api_versions")[1] == {"versions": ["V1", "V2", "V3", "V4"]}
    assert "millstream" in client.request("GET", "/info")[1]["productName"]
    assert client.request("GET", f"{client.address}/api_versions")[0] == 200  # without a version


def test_properties_of_a_session(gateway: Any) -> None:
    client = GatewayClient(gateway.address, **{"rest.port": "8081", "parallelism.default": "3", "user.token": "secret"})
    client.execute("SET 'pipeline.name' = 'mine'")
    properties = client.request("GET", client.session)[1]["properties"]
    assert properties["execution.runtime-mode"] == "STREAMING"
    assert (properties["parallelism.default"], properties["pipeline.name"]) == ("3", "mine")
    assert "secret" not in str(properties)
    assert ["rest.port", "8081"] not in client.execute("SET")  # the client's, without an effect on the gateway


def test_a_session_is_configured_and_kept(client: GatewayClient) -> None:
    body = {"statement": "CREATE TABLE t (amount INT) WITH ('connector' = 'blackhole')"}
    assert client.request("POST", f"{client.session}/configure-session", body) == (200, {})
    assert client.execute("SHOW TABLES") == [["t"]]
    code, answer = client.request("POST", f"{client.session}/configure-session", {"statement": "USE nothing"})
    assert code == 500
    assert "nothing" in answer["errors"][-1]
    assert client.request("POST", f"{client.session}/heartbeat") == (200, {})


def test_completion(client: GatewayClient) -> None:
    client.execute("CREATE TABLE payments (amount INT) WITH ('connector' = 'blackhole')")
    body = {"statement": "SELECT * FROM pay", "position": 17}
    assert client.request("GET", f"{client.session}/complete-statement", body)[1]["candidates"] == ["payments"]


def test_a_closed_session_does_not_exist(client: GatewayClient) -> None:
    assert client.request("DELETE", client.session) == (200, {"status": "CLOSED"})
    code, answer = client.request("GET", client.session)
    assert code == 404
    assert "there is no session" in answer["errors"][-1]


def test_a_closed_operation_does_not_exist(client: GatewayClient) -> None:
    operation = client.submit("SHOW CATALOGS")
    assert client.request("DELETE", f"{operation}/close") == (200, {"status": "CLOSED"})
    assert client.request("GET", f"{operation}/status")[0] == 404


def test_missing_sessions_and_operations_are_errors(client: GatewayClient) -> None:
    assert "cannot be deployed" in client.request("POST", f"{client.session}/scripts")[1]["errors"][-1]
    assert client.request("GET", "/sessions/nonsense")[0] == 400
    assert client.request("GET", f"{client.session}/nothing")[0] == 404


def test_a_materialized_table_is_refreshed_by_a_statement(client: GatewayClient) -> None:
    path = f"{client.session}/materialized-tables/default_catalog.default_database.m/refresh"
    code, answer = client.request("POST", path, {"staticPartitions": {"day": "it's"}})
    assert code == 200
    operation = f"{client.session}/operations/{answer['operationHandle']}"
    client.wait_for(operation, "ERROR")  # there is no such table
    problem = client.request("GET", f"{operation}/result/0?rowFormat=JSON")[1]["errors"][-1]
    assert "`default_catalog`.`default_database`.`m` REFRESH PARTITION (`day` = 'it''s')" in problem


def test_a_token(inline_engine: None, tmp_path: Path) -> None:
    settings = {"sql-gateway.endpoint.rest.port": "0", "sql-gateway.endpoint.rest.address": "0.0.0.0"}
    token_file = tmp_path / "token"
    gateway = start_gateway(Configuration.from_dict({**settings, "millstream.rest.token-file": str(token_file)}))
    try:
        port = gateway.address.rpartition(":")[2]
        with closing(http.client.HTTPConnection(f"127.0.0.1:{port}")) as connection:
            connection.request("GET", "/v1/info")
            assert connection.getresponse().status == 401
        with closing(http.client.HTTPConnection(f"127.0.0.1:{port}")) as connection:
            headers = {"Authorization": f"Bearer {token_file.read_text().strip()}", "Host": "gateway.example"}
            connection.request("GET", "/v1/info", headers=headers)
            assert connection.getresponse().status == 200
    finally:
        gateway.stop()


def test_sessions_expire_and_are_limited() -> None:
    clock, numbers = Clock(), iter(range(100))
    sessions = Sessions(Configuration(), SessionLimits(2, 60.0), clock, lambda: str(next(numbers)))
    first, second = sessions.open(None, {}), sessions.open("two", {})
    with pytest.raises(TooManySessions):
        sessions.open(None, {})
    clock.time = 50
    sessions.get(first.handle)
    clock.time = 100
    sessions.expire()
    assert sessions.get(first.handle) is first
    with pytest.raises(NoSuchSession):
        sessions.get(second.handle)
    sessions.close_all()


def test_a_statement_that_takes_too_long_times_out(client: GatewayClient) -> None:
    client.execute("SET 'table.dml-sync' = 'true'")
    client.execute("CREATE TABLE endless (n INT) WITH ('connector' = 'datagen', 'rows-per-second' = '10')")
    client.execute("CREATE TABLE sink (n INT) WITH ('connector' = 'blackhole')")
    operation = client.submit("INSERT INTO sink SELECT n FROM endless", executionTimeout=100)
    client.wait_for(operation, "TIMEOUT")
    assert client.execute("SHOW JOBS")[0][2] in ("CANCELED", "CANCELLING")


def test_requests_of_other_sites_and_large_bodies_are_refused(gateway: Any) -> None:
    address = gateway.address.removeprefix("http://")

    def ask(body: bytes = b"{}", **headers: str) -> int:
        with closing(http.client.HTTPConnection(address)) as connection:
            names = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request("POST", "/v2/sessions", body, {"Content-Type": "application/json", **names})
            return connection.getresponse().status

    assert ask() == 200
    assert ask(Host="evil.example") == 421
    assert ask(Origin="http://evil.example") == 403
    assert ask(Content_Length=str(5_000_000)) == 413


def test_other_machines_cannot_reach_it() -> None:
    configuration = Configuration.from_dict({"sql-gateway.endpoint.rest.address": "0.0.0.0"})
    with pytest.raises(NotLoopback):
        Gateway.start(configuration, Clock(), lambda: "", lambda *_: [])
