"""The REST resources of a running job."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from rest_cluster import Cluster, wait_for

from millstream.cluster import entrypoint
from millstream.cluster.checkpoints import Checkpoints
from millstream.cluster.dispatcher import Dispatcher
from millstream.cluster.rest.application import create_application
from millstream.cluster.rest.context import RestContext
from millstream.cluster.rest.server import RestServer
from millstream.common import Configuration
from millstream.errors import ExternalError

NO_JOB = "0" * 31 + "f"


def test_lists_of_jobs(cluster: Cluster) -> None:
    wait_for(lambda: cluster.get("/jobs")["jobs"] == [{"id": cluster.job, "status": "RUNNING"}])
    (job,) = cluster.get("/v1/jobs/overview")["jobs"]
    assert (job["jid"], job["name"], job["state"], job["end-time"]) == (cluster.job, "sums", "RUNNING", -1)
    assert job["tasks"]["running"] == job["tasks"]["total"] == 4
    assert job["tasks"]["failed"] == job["pending-operators"] == 0
    overview = cluster.get("/overview")
    assert (overview["jobs-running"], overview["slots-total"]) == (1, 2)
    assert cluster.get("/config")["flink-version"].startswith("2.")


@pytest.mark.parametrize("feature", ["cancel", "rescale"])
def test_the_buttons_of_the_web_ui_follow_options(feature: str) -> None:
    configuration = Configuration.from_dict({f"web.{feature}.enable": "false"})
    context = RestContext(Dispatcher(), entrypoint.SystemClock(), entrypoint.new_id, configuration=configuration)
    server = RestServer.start(create_application(context), "127.0.0.1", "0")
    try:
        with urllib.request.urlopen(f"{server.address}/config", timeout=30) as answer:
            features = json.load(answer)["features"]
    finally:
        server.stop()
    expected = {"web-submit": False, "web-cancel": True, "web-rescale": True, "web-history": False}
    assert features == {**expected, f"web-{feature}": False}


def test_details_of_a_job(cluster: Cluster) -> None:
    def details() -> Any:
        job = cluster.get(f"/jobs/{cluster.job}")
        return job if job["vertices"][1]["metrics"]["read-records"] > 100 else None

    job = wait_for(details)
    source, reduce = job["vertices"]
    assert source["name"] == "Source: numbers"
    assert (source["parallelism"], source["status"], source["tasks"]["RUNNING"]) == (2, "RUNNING", 2)
    assert source["metrics"]["write-records"] >= reduce["metrics"]["read-records"] > 0
    assert reduce["metrics"]["accumulated-busy-time"] > 0
    assert job["plan"]["nodes"][1]["inputs"][0]["ship_strategy"] == "HASH"
    assert job["plan"]["nodes"][1]["inputs"][0]["id"] == source["id"]
    assert job["timestamps"]["RUNNING"] >= job["timestamps"]["CREATED"] > 0
    assert cluster.get(f"/jobs/{cluster.job}/plan")["plan"] == job["plan"]
    vertex = cluster.get(f"/jobs/{cluster.job}/vertices/{reduce['id']}")
    assert [subtask["subtask"] for subtask in vertex["subtasks"]] == [0, 1]
    assert all(subtask["metrics"]["read-records"] > 0 for subtask in vertex["subtasks"])
    assert vertex["aggregated"]["metrics"]["read-records"]["sum"] == sum(
        subtask["metrics"]["read-records"] for subtask in vertex["subtasks"]
    )
    assert len(cluster.get(f"/jobs/{cluster.job}/vertices/{reduce['id']}/watermarks")) == 2
    load = cluster.get(f"/jobs/{cluster.job}/vertices/{reduce['id']}/backpressure")
    assert load["backpressure-level"] == "ok"
    assert all(subtask["busyRatio"] + subtask["idleRatio"] == pytest.approx(1) for subtask in load["subtasks"])


def test_checkpoints_of_a_job(cluster: Cluster) -> None:
    history = wait_for(lambda: (found := cluster.get(f"/jobs/{cluster.job}/checkpoints"))["history"] and found)
    newest = history["history"][0]
    assert history["latest"]["completed"] == newest
    assert newest["status"] == "COMPLETED"
    assert newest["external_path"].endswith(f"chk-{newest['id']}")
    assert history["summary"]["state_size"]["max"] > 0
    details = cluster.get(f"/jobs/{cluster.job}/checkpoints/details/{newest['id']}")
    assert len(details["tasks"]) == 2
    assert {**details, "tasks": {}} == newest
    source, reduce = (vertex["id"] for vertex in cluster.get(f"/jobs/{cluster.job}")["vertices"])
    path = f"/jobs/{cluster.job}/checkpoints/details/{newest['id']}/subtasks"
    in_checkpoint = cluster.get(f"{path}/{reduce}")
    assert {name: in_checkpoint[name] for name in details["tasks"][reduce]} == details["tasks"][reduce]
    sizes = [subtask["state_size"] for subtask in in_checkpoint["subtasks"]]
    assert len(sizes) == in_checkpoint["num_acknowledged_subtasks"] == 2
    assert sum(sizes) == in_checkpoint["state_size"] == newest["state_size"] > max(sizes)
    assert in_checkpoint["summary"]["state_size"]["max"] == max(sizes)
    assert cluster.get(f"{path}/{source}")["state_size"] == 0
    assert cluster.request("GET", f"{path}/{NO_JOB}")[0] == 404
    assert cluster.request("GET", f"/jobs/{cluster.job}/checkpoints/details/999999")[0] == 404
    configuration = cluster.get(f"/jobs/{cluster.job}/checkpoints/config")
    assert (configuration["mode"], configuration["interval"]) == ("exactly_once", 100)


def test_a_failed_checkpoint_and_the_restored_one_are_shown(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"/jobs/{cluster.job}/checkpoints"
    assert cluster.get(path)["latest"]["restored"] is None
    wait_for(lambda: cluster.get(path)["counts"]["completed"])
    complete = Checkpoints.complete
    failures = iter([ExternalError("the disk is full")])

    def fail_once(self: Checkpoints, metadata: Any, clock: Any) -> Any:
        for failure in failures:
            raise failure
        return complete(self, metadata, clock)

    monkeypatch.setattr(Checkpoints, "complete", fail_once)
    shown = wait_for(lambda: (found := cluster.get(path))["latest"]["restored"] and found)
    failed = shown["latest"]["failed"]
    assert (failed["status"], failed["failure_message"]) == ("FAILED", "the disk is full")
    assert failed in shown["history"]
    vertex = cluster.get(f"/jobs/{cluster.job}")["vertices"][1]["id"]
    subtasks = cluster.get(f"{path}/details/{failed['id']}/subtasks/{vertex}")
    assert (subtasks["status"], subtasks["num_acknowledged_subtasks"]) == ("FAILED", 0)
    assert subtasks["subtasks"][1] == {"className": "pending", "index": 1, "status": "pending_or_failed"}
    assert (shown["counts"]["failed"], shown["counts"]["restored"]) == (1, 1)
    assert shown["latest"]["restored"]["external_path"].endswith(f"chk-{shown['latest']['restored']['id']}")
    names = "numberOfFailedCheckpoints,totalNumberOfCheckpoints"
    metrics = {entry["id"]: int(entry["value"]) for entry in cluster.get(f"/jobs/{cluster.job}/metrics?get={names}")}
    assert metrics["numberOfFailedCheckpoints"] == 1
    assert metrics["totalNumberOfCheckpoints"] > shown["counts"]["completed"]


def test_requests_of_flinks_clients_without_effect(cluster: Cluster) -> None:
    job = f"/jobs/{cluster.job}"
    assert cluster.request("PATCH", f"{job}/clientHeartbeat", {"expiredTimestamp": 1}) == (202, {})
    assert cluster.request("PATCH", f"/jobs/{NO_JOB}/clientHeartbeat", {"expiredTimestamp": 1})[0] == 404
    assert cluster.get("/datasets") == {"dataSets": []}
    assert cluster.get(f"{job}/jobmanager/environment") == cluster.get("/jobmanager/environment")
    vertex = cluster.get(job)["vertices"][0]["id"]
    attempt = f"{job}/vertices/{vertex}/subtasks/1/attempts"
    nothing = {"subtask": 1, "attempt": 0, "id": vertex, "user-accumulators": []}
    assert cluster.get(f"{attempt}/0/accumulators") == nothing
    assert cluster.request("GET", f"{attempt}/7/accumulators")[0] == 404


def test_secrets_are_hidden(cluster: Cluster) -> None:
    options = {entry["key"]: entry["value"] for entry in cluster.get(f"/jobs/{cluster.job}/jobmanager/config")}
    assert options["parallelism.default"] == "2"
    assert "very secret" not in str(options)


def test_savepoints_and_their_disposal(cluster: Cluster) -> None:
    assert cluster.get(f"/jobs/{cluster.job}/checkpoints")["latest"]["savepoint"] is None
    trigger = "a" * 32
    body = {"target-directory": str(cluster.directory / "savepoints"), "cancel-job": False, "triggerId": trigger}
    assert cluster.request("POST", f"/jobs/{cluster.job}/savepoints", body) == (202, {"request-id": trigger})
    assert cluster.request("POST", f"/jobs/{cluster.job}/savepoints", body) == (202, {"request-id": trigger})

    def location() -> Any:
        answer = cluster.get(f"/v1/jobs/{cluster.job}/savepoints/{trigger}")
        return answer["operation"]["location"] if answer["status"]["id"] == "COMPLETED" else None

    path = wait_for(location)
    shown = cluster.get(f"/jobs/{cluster.job}/checkpoints")
    savepoint = shown["latest"]["savepoint"]
    assert [each for each in shown["history"] if each["is_savepoint"]] == [savepoint]
    assert (savepoint["external_path"], savepoint["savepointFormat"]) == (path, "CANONICAL")
    assert (savepoint["status"], savepoint["checkpoint_type"]) == ("COMPLETED", "SAVEPOINT")
    assert savepoint["state_size"] == sum(
        file.stat().st_size for file in Path(path).rglob("*") if file.is_file() and file.name != "_metadata"
    )
    assert 0 < savepoint["end_to_end_duration"] < 60_000
    assert len(list((cluster.directory / "savepoints").iterdir())) == 1
    code, answer = cluster.request("POST", "/savepoint-disposal", {"savepoint-path": path})
    assert code == 200
    assert cluster.get(f"/savepoint-disposal/{answer['request-id']}")["status"] == {"id": "COMPLETED"}
    assert list((cluster.directory / "savepoints").iterdir()) == []
    code, answer = cluster.request("POST", "/savepoint-disposal", {"savepoint-path": path})
    assert cluster.request("GET", f"/savepoint-disposal/{answer['request-id']}")[0] == 500


def test_a_job_is_stopped_with_a_savepoint(cluster: Cluster) -> None:
    body = {"targetDirectory": str(cluster.directory / "savepoints"), "drain": True, "formatType": "NATIVE"}
    code, answer = cluster.request("POST", f"/jobs/{cluster.job}/stop", body)
    assert code == 202
    assert cluster.get(f"/jobs/{cluster.job}/execution-result")["status"] == {"id": "IN_PROGRESS"}
    path = f"/jobs/{cluster.job}/savepoints/{answer['request-id']}"
    wait_for(lambda: cluster.get(path)["status"]["id"] == "COMPLETED")
    assert cluster.get(f"/jobs/{cluster.job}/status") == {"status": "FINISHED"}
    result = cluster.get(f"/jobs/{cluster.job}/execution-result")["job-execution-result"]
    assert result["application-status"] == "SUCCEEDED"
    assert result["net-runtime"] == result["end-time"] - result["start-time"] > 0


def test_a_job_is_cancelled(cluster: Cluster) -> None:
    assert cluster.request("PATCH", f"/v1/jobs/{cluster.job}?mode=cancel") == (202, {})
    wait_for(lambda: cluster.get(f"/jobs/{cluster.job}/status") == {"status": "CANCELED"})
    assert cluster.get("/overview")["jobs-cancelled"] == 1


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", f"/jobs/{NO_JOB}", 404),
        ("GET", "/jobs/nonsense", 400),
        ("GET", f"/jobs/{NO_JOB}/savepoints/{'b' * 32}", 404),
        ("GET", "/no/such/path", 404),
        ("PATCH", f"/jobs/{NO_JOB}", 404),
        ("POST", f"/jobs/{NO_JOB}/savepoints", 400),
    ],
)
def test_errors_have_the_form_that_flinks_clients_read(cluster: Cluster, method: str, path: str, code: int) -> None:
    answered, body = cluster.request(method, path)
    assert answered == code
    assert list(body) == ["errors"]
    assert all(isinstance(text, str) for text in body["errors"])


def test_missing_resources_of_a_job_are_not_found(cluster: Cluster) -> None:
    assert cluster.request("GET", f"/jobs/{cluster.job}/vertices/{NO_JOB}")[0] == 404
    assert cluster.request("GET", f"/jobs/{cluster.job}/savepoints/{NO_JOB}")[0] == 404


def test_a_checkpoint_is_taken_now(cluster: Cluster) -> None:
    wait_for(lambda: cluster.get(f"/jobs/{cluster.job}/checkpoints")["counts"]["completed"])
    code, answer = cluster.request("POST", f"/jobs/{cluster.job}/checkpoints", {"checkpointType": "FULL"})
    assert code == 202

    def number() -> Any:
        polled = cluster.get(f"/jobs/{cluster.job}/checkpoints/{answer['request-id']}")
        return polled["operation"]["checkpointId"] if polled["status"]["id"] == "COMPLETED" else None

    taken = wait_for(number)
    assert cluster.get(f"/jobs/{cluster.job}/checkpoints/details/{taken}")["status"] == "COMPLETED"
    assert cluster.request("POST", f"/jobs/{cluster.job}/checkpoints", {"checkpointType": "SMALL"})[0] == 400


@pytest.mark.parametrize("parallelism", [0, True, 1.5, "2", {}, {"sums": 0}, {"nobody": 2}, 9])
def test_an_impossible_parallelism_is_refused_immediately(cluster: Cluster, parallelism: Any) -> None:
    code, answer = cluster.request("POST", f"/jobs/{cluster.job}/rescale", {"parallelism": parallelism})
    assert code == 400, answer
    assert cluster.get(f"/jobs/{cluster.job}")["vertices"][1]["parallelism"] == 2


def test_vertices_get_the_required_parallelism(cluster: Cluster) -> None:
    path = f"/jobs/{cluster.job}/resource-requirements"
    wait_for(lambda: cluster.get(f"/jobs/{cluster.job}/checkpoints")["counts"]["completed"])
    source, sums = cluster.get(path)
    wanted = {sums: {"parallelism": {"lowerBound": 1, "upperBound": 3}}}
    assert cluster.request("PUT", path, wanted) == (200, {})
    wait_for(lambda: cluster.get(path)[sums]["parallelism"]["upperBound"] == 3)
    assert cluster.get(path)[source]["parallelism"]["upperBound"] == 2
    (manager,) = cluster.get("/taskmanagers")["taskmanagers"]
    assert manager["slotsNumber"] == 3
    assert cluster.request("GET", "/taskmanagers/other")[0] == 404


def test_programs_run_in_session_clusters_only(cluster: Cluster) -> None:
    assert cluster.get("/jars")["files"] == []
    assert cluster.get("/applications/overview") == {"applications": []}
    assert cluster.request("POST", "/jars/a.py/run", {})[0] == 404
    assert cluster.request("DELETE", "/cluster")[0] == 404
    assert cluster.get("/jobmanager/logs") == {"logs": []}
    assert cluster.request("GET", "/jobmanager/logs/..%2F..%2Fetc%2Fpasswd")[0] == 404
