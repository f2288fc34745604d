"""The REST resources of metrics, with a running job."""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from rest_cluster import Cluster

from millstream.cluster import entrypoint
from millstream.config.configuration import Configuration


def wait_for(condition: Callable[[], Any]) -> Any:
    """Return the first true value of a condition."""
    for _ in range(300):
        if value := condition():
            return value
        time.sleep(0.1)
    pytest.fail("did not happen within 30 s")


def test_metrics_of_a_running_job(cluster: Cluster) -> None:
    job = f"/jobs/{cluster.job}"
    source, keyed = wait_for(lambda: cluster.get(job)["vertices"])
    of_source, of_keyed = (f"{job}/vertices/{vertex['id']}" for vertex in (source, keyed))

    ids = [metric["id"] for metric in cluster.get(f"{job}/metrics")]
    assert {"uptime", "numRestarts", "lastCheckpointDuration"} <= set(ids)
    assert cluster.get(f"{job}/metrics?get=numRestarts,nothing") == [{"id": "numRestarts", "value": "0"}]

    def records() -> Any:
        (metric,) = cluster.get(f"{of_keyed}/subtasks/metrics?get=numRecordsIn&agg=min,sum")
        return metric if metric["min"] > 0 else None

    metric = wait_for(records)
    assert sorted(metric) == ["id", "min", "sum"]
    names = "numRecordsIn,busyTimeMsPerSecond,isBackPressured"
    aggregates = {metric["id"]: metric for metric in cluster.get(f"{of_keyed}/subtasks/metrics?get={names}")}
    assert sorted(aggregates) == ["busyTimeMsPerSecond", "numRecordsIn"]  # a condition is not a number
    assert 0 <= aggregates["numRecordsIn"]["skew"] <= 100
    (single,) = cluster.get(f"{of_keyed}/subtasks/metrics?get=numBytesIn&subtasks=1")
    assert single["min"] == single["sum"] > 0

    names = [metric["id"] for metric in cluster.get(f"{of_source}/metrics")]
    assert {"0.numRecordsOut", "1.Source__numbers.pendingRecords", "0.busyTimeMsPerSecond"} <= set(names)
    times = cluster.get(
        f"{of_source}/subtasks/0/metrics?get=busyTimeMsPerSecond,idleTimeMsPerSecond,backPressuredTimeMsPerSecond"
    )
    assert sum(float(metric["value"]) for metric in times) == pytest.approx(1000)
    load = cluster.get(f"{of_source}/backpressure")["subtasks"][0]
    assert load["ratio"] + load["idleRatio"] + load["busyRatio"] == pytest.approx(1)

    history = wait_for(lambda: (found := cluster.get(f"{job}/metrics/history"))["timestamps"] and found)
    assert sorted(history["vertices"]) == sorted((source["id"], keyed["id"]))


def test_metrics_of_the_cluster(cluster: Cluster) -> None:
    assert cluster.get("/jobmanager/metrics?get=numRunningJobs,taskSlotsTotal") == [
        {"id": "numRunningJobs", "value": "1"},
        {"id": "taskSlotsTotal", "value": "2"},
    ]
    (threads,) = cluster.get("/taskmanagers/metrics?get=Status.JVM.Threads.Count&agg=max")
    assert threads["max"] > 1
    assert len(cluster.get("/taskmanagers/spark/metrics")) > 5
    (restarts,) = cluster.get(f"/jobs/metrics?get=numRestarts&jobs={cluster.job}")
    assert restarts == {"id": "numRestarts", "min": 0, "max": 0, "avg": 0, "sum": 0, "skew": 0}


def test_mistakes(cluster: Cluster) -> None:
    vertex = cluster.get(f"/jobs/{cluster.job}")["vertices"][0]["id"]
    base = f"/jobs/{cluster.job}/vertices/{vertex}/subtasks"
    assert cluster.request("GET", f"{base}/7/metrics")[0] == 404
    assert cluster.request("GET", f"{base}/metrics?get=numRecordsIn&agg=median")[0] == 400
    assert cluster.request("GET", f"{base}/metrics?subtasks=some")[0] == 400
    assert cluster.request("GET", f"{base}/metrics?get={'a,' * 2000}")[0] == 400
    assert cluster.request("GET", "/taskmanagers/other/metrics")[0] == 404
    assert cluster.request("GET", f"/jobs/metrics?jobs={'f' * 32}")[0] == 404


def test_prometheus_scrapes_a_running_job(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entrypoint, "_metric_servers", [])
    options = {
        "metrics.reporter.prom.factory.class": "org.apache.flink.metrics.prometheus.PrometheusReporterFactory",
        "metrics.reporter.prom.port": "0",
    }
    (server,) = entrypoint.report_metrics(Configuration.from_dict(options))
    assert entrypoint.report_metrics(Configuration.from_dict(options)) == [server]  # once for each process

    def scrape() -> Any:
        with urllib.request.urlopen(f"{server.address}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        return text if "flink_taskmanager_job_task_operator_pendingRecords{" in text else None

    text = wait_for(scrape)
    server.stop()
    assert "flink_jobmanager_numRunningJobs" in text
    assert f'job_id="{cluster.job}"' in text
    assert 'operator_name="Source:_numbers"' in text
