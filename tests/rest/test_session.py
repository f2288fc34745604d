"""A session cluster over REST: programs in processes of their own, with an engine in their process instead of Spark."""

from __future__ import annotations

import json
import os
import signal
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from session_cluster import ENDLESS, PROGRAM, SessionCluster, start, use_inline_workspace, wait_for

from millstream.cli.submission import pack
from millstream.client.remote import Refused, RemoteCluster
from millstream.cluster.session.store import ProgramStore


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SessionCluster]:
    cluster = start(tmp_path / "local", tmp_path / "shared")
    yield cluster
    cluster.close()


def test_programs_share_slots_and_are_archived(cluster: SessionCluster, tmp_path: Path) -> None:
    first = cluster.run(2, ENDLESS, "endless")
    wait_for(lambda: cluster.jobs().get("endless"))
    cluster.run(2, "10", "short")
    waiting = wait_for(lambda: cluster.jobs().get("short"))
    assert (waiting.state, waiting.waiting) == ("CREATED", "waits for 2 slots: 1 of 3 are free")
    too_large = cluster.run(4, "10", "too large")
    wait_for(lambda: cluster.client.program(too_large)["status"] == "FAILED")
    assert "the job needs 4 slots, and the cluster has 3" in cluster.client.program(too_large)["error"]
    overview = cluster.client.overview()
    assert (overview["slots-total"], overview["slots-available"], overview["jobs-running"]) == (3, 1, 2)

    endless = cluster.jobs()["endless"].id
    wait_for(lambda: cluster.client.get(f"/jobs/{endless}/checkpoints")["counts"]["completed"])
    cluster.client.cancel(endless)
    wait_for(lambda: cluster.client.program(first)["end-time"] > 0)
    assert cluster.client.program(first)["status"] == "CANCELED"
    wait_for(lambda: (job := cluster.jobs()["short"]).state == "FINISHED" and job.end > 0)
    assert cluster.client.get(f"/jobs/{endless}/execution-result")["job-execution-result"]["id"] == endless
    with pytest.raises(Refused, match="has ended"):
        cluster.client.get(f"/jobs/{endless}/savepoints/{'0' * 32}")
    wait_for(lambda: cluster.client.overview()["slots-available"] == 3)
    wait_for(lambda: (tmp_path / "shared" / "history" / endless).exists())
    assert "the program is" in (cluster.driver.logs / f"{first}.log").read_text()


def test_the_savepoint_of_a_stopped_job_is_kept_after_its_program_has_ended(
    cluster: SessionCluster, tmp_path: Path
) -> None:
    program = cluster.run(1, ENDLESS, "endless")
    job = wait_for(lambda: cluster.jobs().get("endless")).id
    wait_for(lambda: cluster.client.get(f"/jobs/{job}/checkpoints")["counts"]["completed"])
    _, _, body = cluster.client.pass_on(
        "POST", f"/jobs/{job}/stop", json.dumps({"targetDirectory": str(tmp_path / "kept")}).encode(), None
    )
    wait_for(lambda: cluster.driver._hosted[program].archive)
    answer = cluster.client.get(f"/jobs/{job}/savepoints/{json.loads(body)['request-id']}")
    assert answer["status"] == {"id": "COMPLETED"}
    assert list(Path(answer["operation"]["location"]).iterdir())
    savepoint = cluster.client.get(f"/jobs/{job}/checkpoints")["latest"]["savepoint"]
    assert (savepoint["external_path"], savepoint["checkpoint_type"]) == (
        answer["operation"]["location"],
        "SYNC_SAVEPOINT",
    )


def test_a_failing_or_killed_program_does_not_affect_others(cluster: SessionCluster) -> None:
    upload = cluster.client.upload("broken.py", b"import no_such_module")
    broken = cluster.client.run(upload, [], {})
    victim = cluster.run(1, ENDLESS, "victim")
    cluster.run(1, ENDLESS, "neighbour")
    wait_for(lambda: {"victim", "neighbour"} <= cluster.jobs().keys())
    wait_for(lambda: cluster.client.program(broken)["status"] == "FAILED")
    assert "No module named 'no_such_module'" in cluster.client.program(broken)["error"]
    (failure,) = cluster.client.get(f"/applications/{broken}/exceptions")["exceptionHistory"]["entries"]
    assert failure["exceptionName"] == "ModuleNotFoundError"
    assert (failure["stacktrace"], failure["jobId"]) == (cluster.client.program(broken)["error"], None)
    assert cluster.client.get(f"/applications/{victim}/exceptions")["exceptionHistory"]["entries"] == []
    process = cluster.driver._hosted[victim].process
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    wait_for(lambda: cluster.client.program(victim)["status"] == "FAILED")
    assert "SIGKILL" in cluster.client.program(victim)["error"]
    wait_for(lambda: cluster.jobs()["neighbour"].state == "RUNNING")


def test_an_option_disables_the_submission_of_programs(tmp_path: Path) -> None:
    cluster = start(tmp_path / "local", tmp_path / "shared", web={"web.submit.enable": "false"})
    try:
        assert cluster.client.get("/config")["features"]["web-submit"] is False
        upload = cluster.driver.add_upload("job.py", PROGRAM.encode()).id
        for resource in ("upload", f"{upload}/run", f"{upload}/run-application"):
            status, _, answer = cluster.client.pass_on("POST", f"/jars/{resource}", b"{}", "application/json")
            assert status == 404
            assert "this cluster takes no programs: web.submit.enable is false" in answer.decode()
        assert cluster.driver.programs() == []
    finally:
        cluster.close()


STUBBORN = """
import sys, time
from pathlib import Path

assert sys.stdin.read() == "", "the messages of the cluster are not for the program"
print("is running")
while True:
    time.sleep(0.1)
"""


def test_a_program_without_jobs_is_cancelled_and_does_not_delay_others(
    cluster: SessionCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millstream.cluster.session.driver._IDLE_CANCEL_MS", 1000)
    program = cluster.client.run(cluster.client.upload("stubborn.py", STUBBORN.encode()), [], {})
    log = cluster.driver.logs / f"{program}.log"
    wait_for(lambda: log.exists() and "is running" in log.read_text())
    process = cluster.driver._hosted[program].process
    assert process is not None
    os.kill(process.pid, signal.SIGSTOP)  # from now on, its REST server does not answer
    monkeypatch.setattr("millstream.cluster.session.driver._ANSWER_SECONDS", 2.0)
    cluster.driver.cancel(program)
    cluster.run(1, "10", "other")
    wait_for(lambda: "other" in cluster.jobs())
    wait_for(lambda: cluster.client.program(program)["status"] == "CANCELED")


def test_a_program_that_is_cancelled_before_its_job_starts_is_cancelled(cluster: SessionCluster) -> None:
    program = cluster.run(1, ENDLESS, "endless")
    cluster.driver.cancel(program)  # its process is being started
    wait_for(lambda: cluster.client.program(program)["end-time"] > 0)
    assert cluster.client.program(program)["status"] == "CANCELED"
    assert [job.state for job in cluster.client.list_jobs()] == ["CANCELED"]


def test_a_request_to_cancel_outlives_the_cluster(tmp_path: Path) -> None:
    store = ProgramStore(str(tmp_path / "shared" / "programs"))
    description = {"upload": "job.py", "arguments": ["1", ENDLESS, "endless"], "settings": {}, "submitted": 0}
    store.add("f00d" * 8, description, PROGRAM.encode())
    store.cancel("f00d" * 8)
    cluster = start(tmp_path / "local", tmp_path / "shared")  # the next leader
    try:
        wait_for(lambda: cluster.client.program("f00d" * 8)["status"] == "CANCELED")
    finally:
        cluster.close()


def test_the_newest_programs_that_have_ended_are_kept(
    cluster: SessionCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("millstream.cluster.session.driver._KEPT_ENDED", 1)
    upload = cluster.client.upload("broken.py", b"import no_such_module")
    first = cluster.client.run(upload, [], {})
    wait_for(lambda: cluster.client.program(first)["end-time"] > 0)
    second = cluster.client.run(upload, [], {})
    archives = tmp_path / "shared" / "programs" / "archive"
    wait_for(lambda: [path.stem for path in archives.glob("*.json")] == [second])
    assert [program.id for program in cluster.driver.programs()] == [second]
    assert not (cluster.driver.logs / f"{first}.log").exists()


def test_a_cluster_that_takes_over_continues_all_programs(tmp_path: Path) -> None:
    first = start(tmp_path / "first", tmp_path / "shared", recovers=True)
    try:
        program = first.run(1, ENDLESS, "endless")
        job = wait_for(lambda: first.jobs().get("endless")).id
        newest = wait_for(lambda: first.client.get(f"/jobs/{job}/checkpoints")["counts"]["completed"])
    finally:
        first.close()  # kills all processes, as the end of the cluster does
    second = start(tmp_path / "second", tmp_path / "shared", recovers=True)
    try:
        assert second.client.program(program)["status"] == "RUNNING"
        wait_for(lambda: job in {each.id for each in second.client.list_jobs()})

        def newer() -> Any:
            latest = second.client.get(f"/jobs/{job}/checkpoints")["latest"]["completed"]
            return latest is not None and latest["id"] > newest

        wait_for(newer)
        process = second.driver._hosted[program].process
        assert process is not None
        os.kill(process.pid, signal.SIGKILL)  # a lost program is started again
        wait_for(lambda: second.client.program(program)["restarts"] == 1)
        wait_for(lambda: second.driver._hosted[program].process not in (None, process))
        wait_for(lambda: second.jobs().get("endless") and second.jobs()["endless"].state == "RUNNING")
    finally:
        second.close()


def test_archives_with_dependencies_and_modules(cluster: SessionCluster, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "helpers.py").write_text("WORD = 'helped'")
    job = tmp_path / "job.py"
    job.write_text(
        "import sys, pathlib, helpers\n"
        "print(helpers.WORD, sorted(p.name for p in pathlib.Path('dependencies').rglob('*.py')))"
    )
    name, content, words = pack(str(job), None, {"python.files": str(tmp_path / "lib")})
    program = cluster.client.run(cluster.client.upload(name, content), words, {})
    wait_for(lambda: cluster.client.program(program)["status"] == "FINISHED")
    assert "helped ['helpers.py']" in (cluster.driver.logs / f"{program}.log").read_text()


def test_invalid_programs_are_refused(cluster: SessionCluster) -> None:
    for attempt, text in {
        "upload": lambda: cluster.client.upload("job.jar", b""),
        "large": lambda: cluster.client.upload("job.py", b"#" * 200_000),
        "class": lambda: cluster.client._request(
            "POST", f"/jars/{cluster.client.upload('a.py', b'')}/run", {"entryClass": "org.example.Main"}
        ),
        "graph": lambda: cluster.client._send("POST", "/jobs", b"x" * 1_000_000, "multipart/form-data"),
        "unknown": lambda: cluster.client.run("0_none.py", [], {}),
    }.items():
        with pytest.raises(Refused) as refused:
            text()
        assert len(str(refused.value)) > 20, attempt
    assert cluster.client.get("/jars")["files"][0]["name"] == "a.py"
    with pytest.raises(Refused, match="without a job"):
        cluster.client._request("POST", f"/jars/{cluster.client.upload('a.py', b'')}/run", {})


def test_requests_without_the_token_are_refused(cluster: SessionCluster) -> None:
    for method, path in (("GET", "/jobs"), ("DELETE", "/cluster"), ("POST", "/jars/upload"), ("GET", "/openapi.json")):
        request = urllib.request.Request(cluster.server.address + path, method=method)
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=30)
        with refused.value as answer:
            assert answer.code == 401
            assert list(json.load(answer)) == ["errors"]
    assert not cluster.driver.is_shut_down.is_set()
    with pytest.raises(Refused, match="needs a token"):
        RemoteCluster(cluster.server.address, "another token").overview()


QUERY = "SELECT n, COUNT(*) AS how_many FROM letters GROUP BY n"
TABLE = """CREATE TABLE letters (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '50',
'fields.n.min' = '1', 'fields.n.max' = '3')"""


def test_the_workspace_runs_sql_in_slots_of_the_cluster(
    cluster: SessionCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_inline_workspace(monkeypatch)

    def ask(method: str, path: str, body: Any = None) -> Any:
        status, _, answer = cluster.client.pass_on(method, path, json.dumps(body).encode(), "application/json")
        assert status == 200, answer
        return json.loads(answer)

    refused = cluster.client.pass_on("POST", f"/sql/v4/sessions/{uuid.UUID(int=0)}/heartbeat", b"{}", None)
    assert (refused[0], json.loads(refused[2])) == (404, {"errors": ["no session of the SQL workspace is open"]})
    assert cluster.driver.programs() == []

    cluster.run(2, ENDLESS, "endless")
    wait_for(lambda: cluster.jobs().get("endless"))
    session = f"/sql/v4/sessions/{ask('POST', '/sql/v4/sessions', {})['sessionHandle']}"
    assert [program.name for program in cluster.driver.programs()] == ["job.py", "SQL workspace"]
    read_until(ask, submit(ask, session, TABLE), "INSERT")
    read_until(ask, submit(ask, session, "SET 'parallelism.default' = '1'"), "INSERT")
    operation = submit(ask, session, QUERY)
    read_until(ask, operation, "UPDATE_AFTER")
    second = submit(ask, session, f"/* another */ {QUERY}")
    waiting = wait_for(lambda: [job for job in cluster.client.list_jobs() if job.waiting])
    assert waiting[0].waiting == "waits for 1 slots: 0 of 3 are free"
    ask("POST", f"{operation}/cancel", {})
    read_until(ask, second, "INSERT")

    process = cluster.driver._hosted[cluster.driver._workspace].process
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    wait_for(lambda: cluster.client.overview()["slots-available"] == 1)
    assert "sessionHandle" in ask("POST", "/sql/v4/sessions", {})  # of another process
    assert cluster.jobs()["endless"].state == "RUNNING"


def submit(ask: Callable[..., Any], session: str, statement: str) -> str:
    answer = ask("POST", f"{session}/statements", {"statement": statement})
    return f"{session}/operations/{answer['operationHandle']}"


def read_until(ask: Callable[..., Any], operation: str, kind: str) -> None:
    """Read pages of a result until one has a row of this kind."""
    token = 0

    def has_row() -> bool:
        nonlocal token
        page = ask("GET", f"{operation}/result/{token}?rowFormat=JSON")
        if page["resultType"] == "PAYLOAD":
            token += 1
        return any(row["kind"] == kind for row in page.get("results", {}).get("data", []))

    wait_for(has_row)
