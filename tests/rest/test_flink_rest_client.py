"""The package flink-rest-client of PyPI, with a running job."""

from __future__ import annotations

import json
from pathlib import Path

from pypi import install, run_program
from rest_cluster import Cluster, wait_for

PROGRAM = """
import json, sys, time
from flink_rest_client import FlinkRestClient

client = FlinkRestClient.get("127.0.0.1", int(sys.argv[1]))
(job,) = client.jobs.job_ids()
vertex = client.jobs.get_vertex(job, client.jobs.get_vertex_ids(job)[0])
subtasks = vertex.subtasks
checkpoint = client.jobs.get_checkpoint_ids(job)[-1]
answers = {
    "overview": client.overview(), "config": client.config(), "jobs": client.jobs.overview(),
    "job": client.jobs.get(job), "jobConfig": client.jobs.get_config(job), "plan": client.jobs.get_plan(job),
    "exceptions": client.jobs.get_exceptions(job), "result": client.jobs.get_execution_result(job),
    "metrics": client.jobs.get_metrics(job), "allMetrics": client.jobs.metrics(),
    "accumulators": client.jobs.get_accumulators(job), "checkpoints": client.jobs.get_checkpoints(job),
    "checkpointConfig": client.jobs.get_checkpointing_configuration(job),
    "checkpoint": client.jobs.get_checkpoint_details(job, checkpoint),
    "vertex": vertex.details(), "backpressure": vertex.backpressure(),
    "vertexMetrics": vertex.metrics(["0.numRecordsIn"]),
    "times": vertex.subtasktimes(), "taskmanagers": vertex.taskmanagers(), "watermarks": vertex.watermarks(),
    "subtask": subtasks.get(0), "attempt": subtasks.get_attempt(0, 0),
    "subtaskMetrics": subtasks.metrics(["numRecordsIn"]),
    "subtaskAccumulators": subtasks.accumulators(),
    "managers": client.taskmanagers.all(), "manager": client.taskmanagers.get("spark"),
    "logs": client.jobmanager.logs(), "managerConfig": client.jobmanager.config(),
    "managerMetrics": client.jobmanager.metrics(),
}
def wait(trigger):
    while trigger.status["status"]["id"] != "COMPLETED":
        time.sleep(0.05)
    return trigger.status["operation"]["location"]
answers["savepoint"] = wait(client.jobs.create_savepoint(job, sys.argv[2]))
answers["stopped"] = wait(client.jobs.stop(job, sys.argv[2], drain=False))
print(json.dumps(answers))
"""


def test_its_calls_are_answered(cluster: Cluster, tmp_path: Path) -> None:
    wait_for(lambda: cluster.get(f"/jobs/{cluster.job}/checkpoints")["history"])
    folder = install("flink-rest-client", "1.0.8")
    port = cluster.address.rpartition(":")[2]
    done = run_program(folder, PROGRAM, port, str(tmp_path / "savepoints"))
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    assert answers["job"]["jid"] == cluster.job
    assert answers["overview"]["jobs-running"] == 1
    assert answers["attempt"].keys() == answers["subtask"].keys()
    assert answers["checkpoint"]["tasks"].keys() == {vertex["id"] for vertex in answers["job"]["vertices"]}
    written = sorted(Path(answers[name]) for name in ("savepoint", "stopped"))
    assert written == sorted((tmp_path / "savepoints").iterdir())
