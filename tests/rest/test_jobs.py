"""The REST resources of a running job."""

from __future__ import annotations

from typing import Any

import pytest
from rest_cluster import Cluster, wait_for

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
    assert cluster.get(f"/jobs/{cluster.job}/checkpoints/details/{newest['id']}") == newest
    assert cluster.request("GET", f"/jobs/{cluster.job}/checkpoints/details/999999")[0] == 404
    configuration = cluster.get(f"/jobs/{cluster.job}/checkpoints/config")
    assert (configuration["mode"], configuration["interval"]) == ("exactly_once", 100)


def test_secrets_are_hidden(cluster: Cluster) -> None:
    options = {entry["key"]: entry["value"] for entry in cluster.get(f"/jobs/{cluster.job}/jobmanager/config")}
    assert options["parallelism.default"] == "2"
    assert "very secret" not in str(options)


def test_savepoints_and_their_disposal(cluster: Cluster) -> None:
    trigger = "a" * 32
    body = {"target-directory": str(cluster.directory / "savepoints"), "cancel-job": False, "triggerId": trigger}
    assert cluster.request("POST", f"/jobs/{cluster.job}/savepoints", body) == (202, {"request-id": trigger})
    assert cluster.request("POST", f"/jobs/{cluster.job}/savepoints", body) == (202, {"request-id": trigger})

    def location() -> Any:
        answer = cluster.get(f"/v1/jobs/{cluster.job}/savepoints/{trigger}")
        return answer["operation"]["location"] if answer["status"]["id"] == "COMPLETED" else None

    path = wait_for(location)
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


def test_what_a_job_lacks_is_not_found(cluster: Cluster) -> None:
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
def test_a_parallelism_that_is_not_possible_is_refused_at_once(cluster: Cluster, parallelism: Any) -> None:
    code, answer = cluster.request("POST", f"/jobs/{cluster.job}/rescale", {"parallelism": parallelism})
    assert code == 400, answer
    assert cluster.get(f"/jobs/{cluster.job}")["vertices"][1]["parallelism"] == 2


def test_vertices_get_the_parallelism_that_is_required(cluster: Cluster) -> None:
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
