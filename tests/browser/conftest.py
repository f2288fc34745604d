"""A real browser, and a REST server with running jobs, for the tests of the web UI."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright
from rest_cluster import Cluster, start_job

from millstream.cli.workspace import PATH, create_workspace
from millstream.cluster import entrypoint
from millstream.cluster.rest.application import create_application
from millstream.cluster.rest.context import RestContext
from millstream.cluster.rest.server import RestServer

NAMES = ("chromium", "chromium-browser", "google-chrome")
HOSTILE_NAME = "<img src=x onerror=alert(1)><script>alert(2)</script> & \"'sums'"
INSTALL_SECONDS = 240
expect.set_options(timeout=60_000)  # for machines under load


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of an installed Chromium; it is installed on Debian if this is the root user of a container."""
    if path := find_chromium():
        return path
    if sys.platform == "linux" and shutil.which("apt-get") and os.geteuid() == 0:
        for words in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", "chromium"]):
            environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            try:
                subprocess.run(["apt-get", *words], env=environment, capture_output=True, timeout=INSTALL_SECONDS)
            except subprocess.TimeoutExpired:
                pytest.skip("there is no Chromium, and apt-get did not install it in time")
        if path := find_chromium():
            return path
    pytest.skip("there is no Chromium: install the package chromium")


def find_chromium() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """A browser. It ends with the module: Playwright runs an event loop in this thread, and asyncio allows one."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        )
        yield browser
        browser.close()


@pytest.fixture
def cluster(tmp_path: Path, inline_engine: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    """A running job with a hostile name behind a REST server, in this process."""
    monkeypatch.setattr(entrypoint, "DISPATCHER", entrypoint.Dispatcher())
    client = start_job(tmp_path, HOSTILE_NAME)
    context = RestContext(
        entrypoint.DISPATCHER,
        entrypoint.SystemClock(),
        entrypoint.new_id,
        mounted={PATH: create_workspace({"parallelism.default": "2"})},
        log_lines=entrypoint.LOG_LINES,
    )
    server = RestServer.start(create_application(context), "127.0.0.1", "0")
    yield Cluster(server.address, client, tmp_path)
    server.stop()
    client.cancel()
    client.wait(30)
