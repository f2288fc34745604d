"""State, flame graphs and SQL in a real browser, and the accessibility of every page."""

from __future__ import annotations

import re
from pathlib import Path

from accessibility import find_violations
from playwright.sync_api import Browser, ConsoleMessage, Page, expect
from rest_cluster import Cluster

TABS = ("Graph", "Checkpoints", "State", "Epochs", "Watermarks", "Exceptions", "Log", "Configuration")
LOADED = {
    "Graph": "Operators",
    "Checkpoints": "Compare two snapshots",
    "State": "Entries of reduced",
    "Epochs": "Slowest subtask",
    "Watermarks": "What holds each operator back",
    "Exceptions": "No failures",
    "Log": "the status is RUNNING",
    "Configuration": "taskmanager.memory.process.size",
}
CREATE = """CREATE TABLE letters (n BIGINT, name STRING) WITH (
'connector' = 'datagen', 'rows-per-second' = '20', 'fields.n.min' = '1', 'fields.n.max' = '3');
"""


def test_state_is_read_compared_and_sampled_and_sql_runs(browser: Browser, cluster: Cluster, tmp_path: Path) -> None:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if is_problem(message) else None)
    page.on("pageerror", lambda error: problems.append(str(error)))

    page.goto(f"{cluster.address}/#/jobs/{cluster.job}/state")
    browse_state(page, problems)
    compare(page)
    sample_stacks(page, cluster)
    page.get_by_role("link", name="SQL", exact=True).click()
    work_with_sql(page, tmp_path)
    page.get_by_role("link", name="Jobs", exact=True).click()
    expect(page.locator("tbody tr").filter(has_text="collect")).to_have_count(1)
    assert problems == []
    check_accessibility(page, cluster)
    context.close()


def is_problem(message: ConsoleMessage) -> bool:
    """Whether a line of the console is an error. Chromium keeps the style of text that is deleted in an editor, and
    then reports its own inline style."""
    return message.type == "error" and not message.text.startswith("Applying inline style")


def check_accessibility(page: Page, cluster: Cluster) -> None:
    """Of a result and of a flame graph; the other test checks the pages as they open."""
    page.goto(f"{cluster.address}/#/sql")
    expect(page.get_by_role("button", name="Run statement")).to_be_enabled()
    page.get_by_role("textbox", name="SQL statements").click()
    page.keyboard.press("Control+End")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("region", name="Rows").locator("tbody tr")).to_have_count(3)
    assert find_violations(page) == []
    page.goto(f"{cluster.address}/#/jobs/{cluster.job}/graph")
    page.get_by_role("button", name=re.compile("Reduce.*parallelism 2")).click()
    page.get_by_text("Flame graph: where the time goes").click()
    expect(page.locator("button.flame").nth(1)).to_be_visible()
    assert find_violations(page) == []


def browse_state(page: Page, problems: list[str]) -> None:
    entries = page.get_by_role("region", name="Entries of the state").locator("tbody tr")
    expect(entries).to_have_count(5)
    page.get_by_label("Key").fill("3")
    page.get_by_role("button", name="Find").click()
    expect(entries).to_have_count(1)
    expect(entries.first.locator("td").first).to_have_text("3")
    page.get_by_label("Key").fill("three")
    page.get_by_label("Key").press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("'three' is not a key")
    assert [text for text in problems if "400" not in text] == []
    problems.clear()


def compare(page: Page) -> None:
    page.get_by_role("navigation", name="Pages of the job").get_by_role("link", name="Checkpoints").click()
    page.get_by_role("button", name="Compare").click()
    rows = page.get_by_role("region", name="Comparison").locator("tbody tr")
    expect(rows.filter(has_text="reduced")).to_have_count(1)


def sample_stacks(page: Page, cluster: Cluster) -> None:
    page.goto(f"{cluster.address}/#/jobs/{cluster.job}/graph")
    page.get_by_role("button", name=re.compile("Reduce.*parallelism 2")).click()
    page.get_by_text("Flame graph: where the time goes").click()
    frame = page.locator("button.flame").nth(1)
    expect(frame).to_be_visible()
    metric = page.get_by_role("button", name="numRecordsIn", exact=True).first
    page.get_by_text("Metrics of Reduce").click()
    metric.click()
    expect(page.get_by_text("numRecordsIn, all subtasks")).to_be_visible()


def work_with_sql(page: Page, tmp_path: Path) -> None:
    editor = page.get_by_role("textbox", name="SQL statements")
    expect(page.get_by_role("button", name="Run statement")).to_be_enabled()
    editor.click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(CREATE)
    page.keyboard.press("Control+Home")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("complementary").get_by_text("letters", exact=True)).to_be_visible()

    page.keyboard.press("Control+End")
    page.keyboard.insert_text("SELECT nme FROM letters")
    expect(page.locator(".cm-lintRange-error")).to_have_text("nme")
    for _ in "nme FROM letters":
        page.keyboard.press("Backspace")
    page.keyboard.insert_text("n, COUNT(*) AS how_many FROM letters GROUP BY n HAV")
    page.keyboard.press("Control+Space")
    page.get_by_role("option", name="HAVING").click()
    page.keyboard.insert_text(" COUNT(*) > 0")

    page.get_by_role("button", name="Explain").click()
    plan = page.get_by_role("region", name="Plan")
    expect(plan).to_contain_text("GroupAggregate")
    expect(plan).to_contain_text("hash")

    page.get_by_role("button", name="Run statement").click()
    rows = page.get_by_role("region", name="Rows").locator("tbody tr")
    expect(rows).to_have_count(3)
    before = int(rows.first.locator("td").nth(1).inner_text())
    expect(rows.first.locator("td").nth(1)).not_to_have_text(str(before))
    page.get_by_role("button", name="Changelog").click()
    expect(page.get_by_role("region", name="Changes")).to_contain_text("+U")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".title .state")).to_have_text("cancelled")

    page.get_by_label("Name to save the text under").fill("letters")
    page.get_by_role("button", name="Save").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    download.value.save_as(tmp_path / "letters.sql")
    assert (tmp_path / "letters.sql").read_text().startswith("CREATE TABLE letters")
    page.reload()
    expect(page.get_by_label("Open a saved text").locator("option")).to_have_text(["Open…", "letters"])
    expect(editor).to_contain_text("GROUP BY n HAVING")


def test_no_page_has_serious_accessibility_violations(browser: Browser, cluster: Cluster) -> None:
    """On a wide light page, and on a narrow dark one, which covers the colours and the layouts."""
    for theme, width in (("light", 1280), ("dark", 390)):
        context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=theme)
        page = context.new_page()
        found: dict[str, list[str]] = {}
        page.goto(cluster.address)
        expect(page.locator("tbody tr")).to_have_count(1)
        found["Overview"] = find_violations(page)
        page.goto(f"{cluster.address}/#/sql")
        expect(page.get_by_role("textbox", name="SQL statements")).to_be_visible()
        found["SQL"] = find_violations(page)
        for tab in TABS:
            page.goto(f"{cluster.address}/#/jobs/{cluster.job}/{tab.lower()}")
            expect(page.get_by_role("main")).to_contain_text(LOADED[tab])
            found[tab] = find_violations(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, tab
        page.get_by_role("button", name="Savepoint").click()
        found["Savepoint"] = find_violations(page)
        context.close()
        assert {name: problems for name, problems in found.items() if problems} == {}, f"{theme}, {width} pixels"
