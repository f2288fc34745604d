"""The web UI in a real browser, with a running job: one session from the overview to the cancelled job."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Browser, Page, expect
from rest_cluster import Cluster

TABS = ("Checkpoints", "State", "Log", "Epochs", "Watermarks", "Exceptions", "Configuration", "Graph")
SHOWS = {
    "Checkpoints": "Whole state",
    "State": "Entries of reduced",
    "Log": "the status is RUNNING",
    "Epochs": "Slowest subtask",
    "Watermarks": "What holds each operator back",
    "Exceptions": "No failures",
    "Configuration": "taskmanager.memory.process.size",
    "Graph": "Operators",
}


def test_a_job_is_listed_inspected_saved_rescaled_and_cancelled(
    browser: Browser, cluster: Cluster, tmp_path: Path
) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: (problems.append(f"alert: {dialog.message}"), dialog.dismiss()))

    page.goto(cluster.address)
    name = find_job(page)
    page.get_by_role("link", name=name).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    check_graph(page)
    for tab in TABS:
        page.get_by_role("navigation", name="Pages of the job").get_by_role("link", name=tab, exact=True).click()
        expect(page.get_by_role("main")).to_contain_text(SHOWS[tab])
    check_themes_and_widths(page)

    take_savepoint(page, tmp_path / "savepoints")
    rescale(page)
    cancel(page)
    expect(page.locator(".title .state")).to_have_text("canceled")
    expect(page.get_by_role("button", name="Savepoint")).to_have_count(0)
    page.get_by_role("link", name="millstream: overview").click()
    expect(page.locator("tbody tr .state")).to_have_text("canceled")
    assert page.locator("img[src=x], main script").count() == 0
    assert problems == []


def test_buttons_that_options_disable_are_hidden(browser: Browser, cluster: Cluster) -> None:
    page = browser.new_page()
    features = {"web-submit": False, "web-cancel": False, "web-rescale": False, "web-history": False}
    page.route("**/config", lambda route: route.fulfill(json={"features": features}))
    with page.expect_response("**/config"):
        page.goto(f"{cluster.address}/#/jobs/{cluster.job}")
    expect(page.locator(".actions").get_by_role("button", name="Savepoint")).to_be_visible()
    expect(page.locator(".actions").get_by_role("button")).to_have_count(1)


def find_job(page: Page) -> str:
    row = page.locator("tbody tr")
    expect(row).to_have_count(1)
    name = row.get_by_role("link").inner_text()
    assert name.startswith("<img src=x onerror=alert(1)>")
    search = page.get_by_role("searchbox")
    search.fill("nothing like it")
    expect(row).to_have_count(0)
    search.fill("SUMS running")
    expect(row).to_have_count(1)
    return name


def check_graph(page: Page) -> None:
    """Both vertices are drawn with their load; the keyboard selects one."""
    vertices = page.locator("svg .vertex")
    expect(vertices).to_have_count(2)
    expect(page.locator("svg .edge")).to_have_count(1)
    reduce = page.get_by_role("button", name=re.compile("Reduce.*parallelism 2"))
    expect(reduce).to_have_attribute("aria-label", re.compile(r"in [1-9][\d.,]*/s"))
    reduce.focus()
    page.keyboard.press("Enter")
    panel = page.get_by_role("region", name=re.compile("Operator .*Reduce"))
    expect(panel.locator("tbody").first.locator("tr")).to_have_count(2)
    page.keyboard.press("Enter")
    expect(panel).to_have_count(0)


def check_themes_and_widths(page: Page) -> None:
    """The page never scrolls sideways, and both themes have another background."""
    backgrounds = set()
    for theme in ("dark", "light"):
        page.get_by_role("button", name=f"Use the {theme} theme").click()
        expect(page.locator("html")).to_have_attribute("data-theme", theme)
        backgrounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 844})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert len(backgrounds) == 2


def take_savepoint(page: Page, directory: Path) -> None:
    page.get_by_role("button", name="Savepoint").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Directory").fill(str(directory))
    dialog.get_by_role("button", name="Take savepoint").click()
    expect(page.get_by_role("status")).to_contain_text(f"Savepoint: {directory}")
    (savepoint,) = directory.iterdir()
    assert list(savepoint.iterdir())


def rescale(page: Page) -> None:
    """The keyboard moves the slider from 2 to 3."""
    page.get_by_role("button", name="Rescale").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("slider").press("ArrowRight")
    dialog.get_by_role("button", name="Rescale job").click()
    expect(page.get_by_role("status")).to_contain_text(re.compile(r"The job runs in 3 slots\. It paused for [1-9]"))


def cancel(page: Page) -> None:
    button = page.get_by_role("button", name="Cancel", exact=True)
    button.click()
    page.get_by_role("dialog").get_by_role("button", name="Keep running").click()
    expect(page.locator(".title .state")).to_have_text("running")
    button.click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel job").click()
