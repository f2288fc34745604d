"""What StatsD and Prometheus get from metric reporters."""

from __future__ import annotations

import socket
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

from millstream.cluster.metrics.metric import Metric, Scope, ScopeType
from millstream.cluster.metrics.reporters.statsd import StatsDReporter
from millstream.cluster.metrics.reporting import start_reporters
from millstream.cluster.metrics.scope_formats import ScopeFormats

JOB = Scope(ScopeType.JOB, {"host": "localhost", "job_id": "1", "job_name": "my.job"})
TASK = Scope(ScopeType.TASK, {**JOB.variables, "tm_id": "spark", "task_name": "map: a -> b", "subtask_index": "0"})
METRICS = [
    Metric(JOB, "uptime", 5),
    Metric(JOB, "lastCheckpointExternalPath", "file:/x"),
    Metric(TASK, "numRecordsIn", 7),
    Metric(TASK, "currentInputWatermark", -(2**63)),
    Metric(TASK, "isBackPressured", True),
]
PROMETHEUS = "org.apache.flink.metrics.prometheus.PrometheusReporterFactory"


def test_statsd_gets_gauges() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(30)
        StatsDReporter("127.0.0.1", server.getsockname()[1], ScopeFormats.of_options({})).report(METRICS)
        lines = server.recv(65536).decode().splitlines()
    task = "localhost.taskmanager.spark.my_job.map- a -> b.0"
    assert lines == [
        "localhost.jobmanager.my_job.uptime:5|g",
        f"{task}.numRecordsIn:7|g",
        f"{task}.currentInputWatermark:0|g",
        f"{task}.currentInputWatermark:-9.22337203685478e+18|g",
        f"{task}.isBackPressured:1|g",
    ]


def test_prometheus_reads_flinks_names_and_labels() -> None:
    settings = {"metrics.reporter.prom.factory.class": PROMETHEUS, "metrics.reporter.prom.port": "0"}
    (server,) = start_reporters(settings, lambda: METRICS, lambda: 0)
    with urllib.request.urlopen(f"{server.address}/metrics", timeout=30) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    server.stop()
    samples = {sample.name: sample for family in families for sample in family.samples}
    assert sorted(samples) == [
        "flink_jobmanager_job_uptime",
        "flink_taskmanager_job_task_currentInputWatermark",
        "flink_taskmanager_job_task_isBackPressured",
        "flink_taskmanager_job_task_numRecordsIn",
    ]
    records = samples["flink_taskmanager_job_task_numRecordsIn"]
    assert (records.value, records.labels["task_name"], records.labels["job_name"]) == (7, "map:_a____b", "my_job")
    assert {family.type for family in families} == {"gauge"}
