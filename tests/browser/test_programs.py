"""The programs of a session cluster in a real browser: one is started, rescaled, saved, stopped and continued by mouse
and keyboard alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from accessibility import find_violations
from playwright.sync_api import Browser, Page, expect
from session_cluster import TOKEN, SessionCluster, start, use_inline_workspace

PROGRAM = """
import sys
from millstream.cluster import entrypoint
from millstream.testing.inline_engine import InlineEngine
entrypoint.SparkEngine = lambda settings: InlineEngine()
from millstream.common import Types, WatermarkStrategy
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.number_seq import NumberSequenceSource

env = StreamExecutionEnvironment.get_execution_environment()
numbers = env.from_source(NumberSequenceSource(0, 10**12), WatermarkStrategy.no_watermarks(), "numbers")
sums = numbers.key_by(lambda n: n % 5, Types.LONG()).reduce(lambda a, b: a + b).uid("sums")
sums.filter(lambda n: n < 0).print()
env.execute(sys.argv[1])
"""
STATEMENT = "SELECT COUNT(*) AS how_many FROM (VALUES (1), (2), (3)) AS v(n)"


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SessionCluster]:
    use_inline_workspace(monkeypatch)
    cluster = start(tmp_path / "local", tmp_path / "shared")
    yield cluster
    cluster.close()


def test_a_program_is_started_operated_and_continued(browser: Browser, cluster: SessionCluster, tmp_path: Path) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(cluster.server.address)
    page.get_by_label("Token").first.fill(TOKEN)
    page.get_by_role("button", name="Continue").first.click()
    page.get_by_role("link", name="Programs").click()

    run(page, tmp_path / "job.py", PROGRAM, arguments="'all sums'", parallelism="1")
    page.get_by_role("link", name="all sums").click()
    expect(page.locator(".title .state")).to_have_text("running")
    page.get_by_role("button", name="Rescale").click()
    page.get_by_role("dialog").get_by_role("slider").press("ArrowRight")
    page.get_by_role("dialog").get_by_role("button", name="Rescale job").click()
    expect(page.get_by_role("status")).to_contain_text("The job runs in 2 slots.")
    page.get_by_role("button", name="Savepoint").click()
    page.get_by_label("Directory").fill(str(tmp_path / "kept"))
    page.get_by_role("button", name="Take savepoint").click()
    expect(page.get_by_role("status")).to_contain_text(f"Savepoint: {tmp_path / 'kept'}")
    page.get_by_role("button", name="Stop").click()
    page.get_by_label("Directory").fill(str(tmp_path / "stopped"))
    page.get_by_role("button", name="Stop job").click()
    expect(page.get_by_role("status")).to_contain_text("Stopped.")
    expect(page.locator(".title .state")).to_have_text("finished")

    page.get_by_role("link", name="Start a program from it").click()
    (savepoint,) = (tmp_path / "stopped").iterdir()
    expect(page.get_by_label("Start from this savepoint")).to_have_value(str(savepoint))
    assert find_violations(page) == []
    page.get_by_label("Arguments").fill("continued")
    page.get_by_label("Parallelism").fill("3")
    page.get_by_role("button", name="Start", exact=True).click()
    page.get_by_role("link", name="continued").click()
    expect(page.locator(".title .state")).to_have_text("running")
    job = page.url.split("/jobs/")[1].split("/")[0]
    options = {entry["key"]: entry["value"] for entry in cluster.client.get(f"/jobs/{job}/jobmanager/config")}
    assert options["execution.state-recovery.path"] == str(savepoint)

    wait_and_fail(page, tmp_path)
    run_sql(page)
    cancel(page)
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert problems == []


def run(page: Page, path: Path, text: str, arguments: str = "", parallelism: str = "") -> None:
    path.write_text(text)
    page.get_by_role("button", name="Run a program").click()
    page.get_by_label("Upload a Python file").set_input_files(path)
    page.get_by_label("Arguments").fill(arguments)
    page.get_by_label("Parallelism").fill(parallelism)
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_role("form", name="Run a program")).to_have_count(0)


def wait_and_fail(page: Page, directory: Path) -> None:
    """A job that finds no slots says so, and a program without a job says why."""
    page.get_by_role("link", name="Programs").click()
    run(page, directory / "job.py", PROGRAM, "another", "2")
    row = page.locator("tbody tr").filter(has=page.get_by_role("link", name="another"))
    expect(row).to_contain_text("waits for 2 slots: 0 of 3 are free")
    run(page, directory / "broken.py", "import no_such_module")
    page.get_by_text("Why it failed").click()
    expect(page.get_by_role("region", name="Programs")).to_contain_text("No module named 'no_such_module'")


def run_sql(page: Page) -> None:
    """A query of the workspace waits for slots, too."""
    page.get_by_role("link", name="SQL", exact=True).click()
    expect(page.get_by_role("button", name="Run statement")).to_be_enabled()
    page.get_by_role("textbox", name="SQL statements").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(STATEMENT)
    page.get_by_role("button", name="Run statement").click()
    expect(page.get_by_role("region", name="Result")).to_contain_text(
        re.compile(r"waits for \d slots: 0 of 3 are free")
    )


def cancel(page: Page) -> None:
    """The programs that hold and want slots are cancelled; the query gets its slots."""
    page.get_by_role("link", name="Programs").click()
    buttons = page.get_by_role("button", name="Cancel job.py")
    for left in (1, 0):
        buttons.first.click()
        page.get_by_role("button", name="Cancel program").click()
        expect(buttons).to_have_count(left)
    expect(page.locator("tbody .state-canceled")).to_have_count(2)
