"""A real Prometheus, of Debian, scrapes a running job with TLS and a token."""

from __future__ import annotations

import json
import socket
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from debian import find_program
from rest_cluster import Cluster, wait_for
from tls_certificate import create_certificate

from millstream.cluster import entrypoint
from millstream.config.configuration import Configuration

CONFIGURATION = """
scrape_configs:
  - job_name: millstream
    scheme: https
    scrape_interval: 1s
    authorization: {{credentials_file: {folder}/token}}
    tls_config: {{ca_file: {folder}/server.pem}}
    static_configs: [{{targets: ["{target}"]}}]
"""


def test_prometheus_scrapes_a_job(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = find_program("prometheus", "prometheus")
    monkeypatch.setattr(entrypoint, "_metric_servers", [])
    settings = {
        **create_certificate(tmp_path),
        "millstream.rest.token-file": str(tmp_path / "token"),
        "metrics.reporter.prom.factory.class": "org.apache.flink.metrics.prometheus.PrometheusReporterFactory",
        "metrics.reporter.prom.port": "0",
    }
    (reporter,) = entrypoint.report_metrics(Configuration.from_dict(settings))
    target = reporter.address.removeprefix("https://")
    (tmp_path / "prometheus.yml").write_text(CONFIGURATION.format(folder=tmp_path, target=target))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [program, f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen([*command, f"--web.listen-address={address}"], stdout=log, stderr=log)

    def query(expression: str) -> Any:
        try:
            url = f"http://{address}/api/v1/query?query={urllib.parse.quote(expression)}"
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]["result"]
        except OSError:
            assert process.poll() is None, (tmp_path / "log").read_text()
            return []

    try:
        (records,) = wait_for(lambda: query("sum(flink_taskmanager_job_task_numRecordsOut) > 0"))
        assert float(records["value"][1]) > 0
        (job,) = query("flink_jobmanager_job_uptime")
        assert (job["metric"]["job_id"], job["metric"]["job_name"]) == (cluster.job, "sums")
        assert len(query("flink_taskmanager_job_task_busyTimeMsPerSecond")) == 4  # two vertices with two subtasks
        assert query("up")[0]["value"][1] == "1"
    finally:
        process.terminate()
        process.wait(60)
        reporter.stop()
