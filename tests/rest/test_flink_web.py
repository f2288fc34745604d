"""`millstream ui`: the web UI, and Flink's dashboard from a jar of the user's Flink."""

from __future__ import annotations

import http.client
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from rest_cluster import Cluster

from millstream.cli.main import main
from millstream.client.flink_web import FlinkWeb, NoFlink, find_jar
from millstream.client.remote import RemoteCluster

MAIN = "import sys; from millstream.cli.main import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture
def jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A jar with a page, in the folder of a Flink."""
    path = tmp_path / "flink" / "lib" / "flink-dist-2.3.0.jar"
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("web/index.html", "<p>the dashboard</p>")
        archive.writestr("web/main.js", "1")
        archive.writestr("secret.txt", "not a page")
    monkeypatch.setenv("FLINK_HOME", str(tmp_path / "flink"))
    return path


@pytest.fixture
def dashboard(cluster: Cluster, jar: Path) -> Iterator[FlinkWeb]:
    dashboard = FlinkWeb(find_jar(), RemoteCluster(cluster.address))
    yield dashboard
    dashboard.stop()


def ask(dashboard: FlinkWeb, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, str, str]:
    host = dashboard.address.removeprefix("http://")
    with closing(http.client.HTTPConnection(host, timeout=30)) as connection:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.headers.get_content_type(), answer.read().decode()


def test_pages_come_from_the_jar_and_data_from_the_cluster(cluster: Cluster, dashboard: FlinkWeb) -> None:
    assert ask(dashboard, "GET", "/") == (200, "text/html", "<p>the dashboard</p>")
    assert ask(dashboard, "GET", "/main.js")[:2] == (200, "text/javascript")
    assert cluster.job in ask(dashboard, "GET", "/jobs/overview")[2]
    for path in ("/../secret.txt", "/%2e%2e/secret.txt", "/secret.txt"):
        assert ask(dashboard, "GET", path)[0] == 404
    cancel = f"/jobs/{cluster.job}?mode=cancel"
    for headers in ({"Origin": "http://evil.example"}, {"Sec_Fetch_Site": "cross-site"}, {"Host": "evil.example"}):
        assert ask(dashboard, "PATCH", cancel, **headers)[0] == 403
    assert cluster.client.get_job_status().result().name == "RUNNING"
    assert ask(dashboard, "PATCH", cancel, b"{}", Content_Type="application/json")[0] == 202
    assert cluster.client.wait(30)


def test_the_command_prints_the_address(cluster: Cluster, jar: Path) -> None:
    words = [sys.executable, "-c", MAIN, "ui", "--no-browser", "-m", cluster.address]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == f"{cluster.address}\n"
    with subprocess.Popen([*words, "--flink-web"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        try:
            with closing(http.client.HTTPConnection(address.removeprefix("http://"), timeout=30)) as connection:
                connection.request("GET", "/")
                assert connection.getresponse().read() == b"<p>the dashboard</p>"
        finally:
            process.terminate()


def test_without_flink(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FLINK_HOME", str(tmp_path))
    with pytest.raises(NoFlink, match="not installed"):
        find_jar()
    assert main(["ui", "-m", "127.0.0.1:1"]) == 1
    assert "no cluster answers" in capsys.readouterr().err
