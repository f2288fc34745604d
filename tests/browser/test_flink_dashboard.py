"""Flink's own dashboard in a real browser. `make dashboard` runs it; CI leaves it out, because it opens 33 pages."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser
from rest_cluster import Cluster, wait_for

from millstream.client.flink_web import FlinkWeb
from millstream.client.remote import RemoteCluster
from millstream.cluster import entrypoint
from millstream.testing.maven import retrieve_cached

VERSION = "2.3.0"
OF_VERTEX = ["detail", "subtasks", "taskmanagers", "watermarks", "accumulators", "backpressure", "metrics"]
OF_VERTEX += ["flamegraph"]
OF_JOB = ["overview", "timeline", "exceptions", "checkpoints", "dataskew", "configuration", "rescales"]
OF_PROCESS = ["metrics", "logs", "stdout", "thread-dump", "profiler"]
NOT_SERVED = ("/profiler", "/flamegraph", "/rescales/")  # answered with 404, as by a Flink where they are disabled

pytestmark = pytest.mark.skipif(
    "MILLSTREAM_FLINK_WEB" not in os.environ, reason="make dashboard downloads and opens the dashboard"
)


@pytest.fixture
def dashboard(cluster: Cluster) -> Iterator[FlinkWeb]:
    module = ("org.apache.flink", "flink-runtime-web", VERSION)
    folder = retrieve_cached(f"flink-runtime-web-{VERSION}", module, alone=True)
    dashboard = FlinkWeb(folder / f"flink-runtime-web-{VERSION}.jar", RemoteCluster(cluster.address))
    yield dashboard
    dashboard.stop()


def test_every_page_opens_without_an_error(browser: Browser, cluster: Cluster, dashboard: FlinkWeb) -> None:
    wait_for(lambda: cluster.get(f"/jobs/{cluster.job}/checkpoints")["history"])
    vertex = entrypoint.DISPATCHER.job(cluster.job).plan().vertices[0].task.vertex
    job = f"job/running/{cluster.job}"
    routes = ["overview", "job/running", "job/completed", "submit", "task-manager"]
    routes += [f"{job}/{page}" for page in OF_JOB] + [f"{job}/overview/{vertex}/{page}" for page in OF_VERTEX]
    routes += [f"task-manager/spark/{page}" for page in (*OF_PROCESS, "log-list")]
    routes += [f"job-manager/{page}" for page in (*OF_PROCESS, "config", "log")]
    page = browser.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if "TypeError" in message.text else None)
    page.on(
        "response",
        lambda answer: (
            problems.append(f"{answer.status} {answer.url}")
            if answer.status >= 400 and not any(part in answer.url for part in NOT_SERVED)
            else None
        ),
    )
    for route in routes:
        page.goto(f"{dashboard.address}/#/{route}")
        page.wait_for_url(re.compile(re.escape(f"#/{route.split('/')[0]}")))
        page.wait_for_timeout(700)  # the pages do not show when they are complete
        assert not problems, f"{route}: {problems[0]}"
        assert page.inner_text("body").strip()
