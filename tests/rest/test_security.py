"""TLS, tokens of readers, basic authentication, bounded bodies and slow clients."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from rest_cluster import Cluster, wait_for
from tls_certificate import create_certificate

from millstream.cli.gateway import start_gateway
from millstream.cli.main import main
from millstream.client import local
from millstream.cluster import entrypoint
from millstream.cluster.metrics.reporting import start_reporters
from millstream.cluster.rest.application import create_application
from millstream.cluster.rest.context import RestContext
from millstream.cluster.rest.security import NoCertificate, NoMainToken, read_security
from millstream.cluster.rest.server import RestServer
from millstream.config.configuration import Configuration

JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The options of a certificate for 127.0.0.1."""
    return create_certificate(tmp_path_factory.mktemp("certificate"))


@contextlib.contextmanager
def protected(settings: dict[str, str]) -> Iterator[RestServer]:
    """The jobs of this process behind a server with these options."""
    security = read_security(Configuration.from_dict(settings), entrypoint.new_token)
    context = RestContext(entrypoint.DISPATCHER, entrypoint.SystemClock(), entrypoint.new_id, security.access)
    has_token = security.access is not None
    server = RestServer.start(create_application(context), "127.0.0.1", "0", has_token=has_token, tls=security.tls)
    try:
        yield server
    finally:
        server.stop()


def ask(address: str, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, str]:
    with contextlib.closing(http.client.HTTPConnection(address.removeprefix("http://"), timeout=30)) as connection:
        connection.request(method, path, body, headers={**JSON, **headers})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def test_commands_and_the_gateway_with_tls(
    inline_engine: None,
    certificate: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(entrypoint, "DISPATCHER", entrypoint.Dispatcher())
    with protected({**certificate, "millstream.rest.token-file": str(tmp_path / "token")}) as server:
        assert server.address.startswith("https://")
        address = server.address.removeprefix("https://")
        token = ["--token-file", str(tmp_path / "token")]
        assert main(["list", "-m", server.address, *token]) == 1  # this machine does not trust the certificate
        assert "certificate verify failed" in capsys.readouterr().err
        assert main(["list", "-m", address, *token]) == 1  # without TLS
        monkeypatch.setattr(local, "_defaults", {**local._defaults, **certificate})
        assert main(["list", "-m", address, *token]) == 0
        assert capsys.readouterr().out == "no jobs\n"
    gateway = start_gateway(Configuration.from_dict({**certificate, "sql-gateway.endpoint.rest.port": "0"}))
    try:
        assert main(["sql", "--endpoint", gateway.address, "-e", "SHOW CATALOGS"]) == 0
        assert "default_catalog" in capsys.readouterr().out
    finally:
        gateway.stop()


def test_prometheus_with_tls(certificate: dict[str, str]) -> None:
    security = read_security(Configuration.from_dict(certificate), entrypoint.new_token)
    settings = {"metrics.reporter.p.factory.class": "PrometheusReporterFactory", "metrics.reporter.p.port": "0"}
    (server,) = start_reporters(settings, list, lambda: 0, security)
    try:
        trust = ssl.create_default_context(cafile=certificate["millstream.rest.ssl.ca-file"])
        host = server.address.removeprefix("https://")
        with contextlib.closing(http.client.HTTPSConnection(host, timeout=30, context=trust)) as connection:
            connection.request("GET", "/metrics")
            assert connection.getresponse().status == 200
    finally:
        server.stop()


def test_files_of_the_certificate_are_checked(certificate: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(NoCertificate, match="are not named"):
        read_security(Configuration.from_dict({"security.ssl.rest.enabled": "true"}), str)
    wrong = {**certificate, "millstream.rest.ssl.key-file": certificate["millstream.rest.ssl.certificate-file"]}
    with pytest.raises(NoCertificate, match="cannot be used"):
        read_security(Configuration.from_dict(wrong), str)
    with pytest.raises(NoMainToken, match="read-only-token-file"):
        read_security(Configuration.from_dict({"millstream.rest.read-only-token-file": str(tmp_path / "r")}), str)


def test_readers_change_nothing(cluster: Cluster, tmp_path: Path) -> None:
    files = {"token-file": tmp_path / "token", "read-only-token-file": tmp_path / "reader"}
    with protected({f"millstream.rest.{key}": str(path) for key, path in files.items()}) as server:
        assert oct((tmp_path / "reader").stat().st_mode & 0o777) == "0o600"
        reader = {"Authorization": f"Bearer {(tmp_path / 'reader').read_text().strip()}"}
        job = f"/jobs/{cluster.job}"
        for path in ("/jobs/overview", job, f"/v1{job}/checkpoints", "/openapi.json"):
            assert ask(server.address, "GET", path, **reader)[0] == 200
        for method, path in (
            ("PATCH", f"{job}?mode=cancel"),
            ("GET", f"{job}/yarn-cancel"),
            ("GET", f"/v1{job}/yarn-cancel"),
            ("POST", f"{job}/savepoints"),
            ("POST", f"{job}/stop"),
            ("DELETE", "/cluster"),
        ):
            assert ask(server.address, method, path, b"{}", **reader)[0] == 403
        basic = base64.b64encode(b"me:" + (tmp_path / "token").read_bytes().strip()).decode()
        assert ask(server.address, "GET", "/jobs", Authorization=f"Basic {basic}")[0] == 401  # not enabled
    assert cluster.client.get_job_status().result().name == "RUNNING"


def test_basic_authentication(cluster: Cluster, tmp_path: Path) -> None:
    settings = {"millstream.rest.token-file": str(tmp_path / "t"), "millstream.rest.basic-authentication": "true"}
    with protected(settings) as server:
        connection = http.client.HTTPConnection(server.address.removeprefix("http://"), timeout=30)
        with contextlib.closing(connection):
            connection.request("GET", "/")
            answer = connection.getresponse()
            assert (answer.status, answer.getheader("WWW-Authenticate")) == (401, 'Basic realm="millstream"')
        token = (tmp_path / "t").read_text().strip()
        for password, status in ((token, 200), ("wrong", 401), ("", 401)):
            basic = base64.b64encode(f"somebody:{password}".encode()).decode()
            assert ask(server.address, "GET", "/", Authorization=f"Basic {basic}")[0] == status
            assert ask(server.address, "GET", "/jobs", Authorization=f"Basic {basic}")[0] == status
        assert ask(server.address, "GET", "/jobs", Authorization="Basic äö")[0] == 401
        assert ask(server.address, "GET", "/jobs", Authorization=f"Bearer {token}")[0] == 200


def test_bodies_are_bounded(cluster: Cluster) -> None:
    path = f"/jobs/{cluster.job}/savepoints"
    status, answer = ask(cluster.address, "POST", path, b'{"target-directory": "' + b"x" * (5 << 20))
    assert (status, "bytes" in answer) == (413, True)
    status, answer = ask(cluster.address, "POST", "/jobs", b"x" * (5 << 20))  # as plain `flink run` sends it
    assert (status, "millstream run" in answer) == (400, True)


def test_slow_clients_delay_neither_the_job_nor_other_requests(cluster: Cluster) -> None:
    host, port = cluster.address.removeprefix("http://").split(":")
    head = f"POST /jobs/{cluster.job}/savepoints HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
    beginnings = (b"GET /jo", head.encode(), head.encode() + b"Content-Length: 1000\r\n\r\n{")
    listing = f"GET /openapi.json HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode() * 20  # whose answers are not read
    with contextlib.ExitStack() as opened:
        for number in range(100):
            client = opened.enter_context(socket.create_connection((host, int(port)), timeout=30))
            client.sendall((*beginnings, listing)[number % 4])
        epochs = cluster.get(f"/jobs/{cluster.job}/millstream/epochs")["total"]
        wait_for(lambda: cluster.get(f"/jobs/{cluster.job}/millstream/epochs")["total"] > epochs + 5)
        code, trigger = cluster.request("POST", f"/jobs/{cluster.job}/checkpoints", {})
        assert code == 202
        poll = f"/jobs/{cluster.job}/checkpoints/{trigger['request-id']}"
        wait_for(lambda: cluster.get(poll)["status"]["id"] == "COMPLETED")


def test_secrets_of_job_parameters_are_hidden(cluster: Cluster) -> None:
    paths = ("config", "jobmanager/config", "millstream/options", "exceptions", "plan")
    answers = json.dumps([cluster.get(f"/jobs/{cluster.job}/{path}") for path in paths])
    assert "user.token" in answers
    assert "very secret" not in answers
