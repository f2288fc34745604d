"""The files of the web UI, and the REST resources that only it reads."""

from __future__ import annotations

import gzip
import hashlib
import urllib.error
import urllib.request
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from rest_cluster import Cluster, wait_for

import millstream
from millstream.cli.main import main
from millstream.cluster import entrypoint
from millstream.cluster.rest.application import create_application
from millstream.cluster.rest.context import RestContext
from millstream.cluster.rest.server import RestServer

REPOSITORY = Path(__file__).parent.parent.parent
BUILT = Path(millstream.__file__).parent / "ui_files"
SOURCES = REPOSITORY / "ui"


def get(address: str) -> tuple[int, Message, str]:
    try:
        with urllib.request.urlopen(address, timeout=30) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.headers, refused.read().decode()


def test_the_built_files_are_up_to_date_with_the_sources() -> None:
    names = ["index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts"]
    names += [path.relative_to(SOURCES).as_posix() for path in (SOURCES / "src").rglob("*") if path.is_file()]
    digest = hashlib.sha256()
    for name in sorted(names):
        digest.update(name.encode() + b"\0" + (SOURCES / name).read_bytes() + b"\0")
    recorded = (BUILT / "sources.sha256").read_text().strip()
    assert digest.hexdigest() == recorded, "the web UI was changed: npm run build in ui/, and commit its files"


def test_the_built_files_are_small_and_load_nothing_from_elsewhere() -> None:
    files = [path for path in BUILT.rglob("*") if path.is_file()]
    assert sum(len(gzip.compress(path.read_bytes())) for path in files) < 600_000
    page = (BUILT / "index.html").read_text()
    assert "//" not in page.replace("<!doctype html>", "")
    assert all("https://" not in path.read_text() for path in files if path.suffix in (".html", ".css"))


def test_the_lock_file_names_no_registry() -> None:
    assert "resolved" not in (SOURCES / "package-lock.json").read_text()


def test_the_page_loads_scripts_of_this_server_only_and_is_cached_by_name(cluster: Cluster) -> None:
    status, headers, page = get(f"{cluster.address}/")
    assert status == 200
    assert "script-src 'self'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-cache"
    (script,) = (path.name for path in (BUILT / "assets").glob("index-*.js"))
    assert f"./assets/{script}" in page
    status, headers, _ = get(f"{cluster.address}/assets/{script}")
    assert (status, headers.get_content_type()) == (200, "text/javascript")
    assert "immutable" in headers["Cache-Control"]
    assert get(f"{cluster.address}/licenses.md")[0] == 200
    for path in ("nothing.js", "..%2findex.html", "%2e%2e/sources.sha256", "../sources.sha256"):
        assert get(f"{cluster.address}/assets/{path}")[0] == 404


def test_with_a_token_the_page_is_served_and_its_data_is_not(cluster: Cluster) -> None:
    context = RestContext(entrypoint.DISPATCHER, entrypoint.SystemClock(), str, "secret")
    server = RestServer.start(create_application(context), "127.0.0.1", "0", has_token=True)
    try:
        assert get(f"{server.address}/")[0] == 200
        assert get(f"{server.address}/jobs/overview")[0] == 401
        assert get(f"{server.address}/assets/../jobs/overview")[0] == 404
    finally:
        server.stop()


def test_run_prints_the_address_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(entrypoint, "_servers", servers := [])
    (tmp_path / "program.py").write_text("print('ran')")
    assert main(["run", "--ui", "-D", "rest.bind-port=0", str(tmp_path / "program.py")]) == 0
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("ran\n", f"web UI: {servers[0].address}\n")
    assert get(servers[0].address)[0] == 200
    servers[0].stop()


def test_the_graph_and_its_epochs(cluster: Cluster) -> None:
    def loaded() -> Any:
        graph = cluster.get(f"/jobs/{cluster.job}/millstream/graph")
        return graph if graph["vertices"][1]["load"]["recordsIn"] else None

    graph = wait_for(loaded)
    source, reduce = graph["vertices"]
    assert graph["edges"] == [{"source": source["id"], "target": reduce["id"], "partitioner": "HASH"}]
    assert [operator["kind"] for operator in source["operators"]] == ["source"]
    assert reduce["operators"][-1]["kind"] == "sink"
    assert (source["level"], reduce["level"], reduce["parallelism"], graph["slots"]) == (0, 1, 2, 2)
    assert source["load"]["recordsOut"] >= reduce["load"]["recordsIn"] > 0
    assert 0 < reduce["load"]["busy"] <= reduce["busiest"] <= 1
    subtasks = cluster.get(f"/jobs/{cluster.job}/millstream/vertices/{reduce['id']}")
    assert len(subtasks["subtasks"]) == 2
    hot = wait_for(lambda: cluster.get(f"/jobs/{cluster.job}/millstream/vertices/{reduce['id']}")["hotKeys"])
    assert {key["key"] for key in hot} <= set("01234")
    assert {key["subtask"] for key in hot} <= {0, 1}
    assert all(0 < key["share"] < 0.5 for key in hot), "each of five keys has a fifth of the records"
    assert all(len(values) == 2 for values in subtasks["operators"][0]["metrics"].values())
    assert cluster.request("GET", f"/jobs/{cluster.job}/millstream/vertices/{'0' * 32}")[0] == 404

    history = cluster.get(f"/jobs/{cluster.job}/millstream/epochs")
    numbers = [epoch["epoch"] for epoch in history["epochs"]]
    assert numbers == list(range(1, 1 + history["total"]))
    last = history["epochs"][-1]
    assert last["duration"] > 0
    assert last["vertices"].keys() == {source["id"], reduce["id"]}
    assert all(0 <= time["average"] <= time["longest"] for time in last["vertices"].values())


def test_options_and_watermarks(cluster: Cluster) -> None:
    options = {option["key"]: option for option in cluster.get(f"/jobs/{cluster.job}/millstream/options")}
    assert options["parallelism.default"]["value"] == "2"
    assert options["parallelism.default"]["ignored"] is None
    assert "secret" not in options["user.token"]["value"]
    assert options["taskmanager.memory.process.size"]["ignored"]

    def watermarks() -> Any:
        answer = cluster.get(f"/jobs/{cluster.job}/millstream/watermarks")
        return answer if answer["sources"] and answer["sources"][0]["total"] else None

    answer = wait_for(watermarks)
    assert [vertex["heldBy"] for vertex in answer["vertices"]] == [None, None], "a job without watermarks"
    assert answer["sources"][0]["name"] == "Source: numbers"
