"""The web UI with a large cluster: 50 jobs, 1,000 subtasks, and a graph of 200 operators, served from fixtures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from playwright.sync_api import Browser, expect

from millstream.cluster.rest import ui
from millstream.cluster.rest.server import RestServer

JOBS, VERTICES, PARALLELISM, LEVELS = 50, 200, 5, 20
START = 1_700_000_000_000


def id_of(number: int) -> str:
    return f"{number:032x}"


def load(number: int) -> dict[str, Any]:
    return {
        **{"recordsIn": 1000 * number, "recordsOut": 900 * number, "recordsInPerSecond": 10.0 * number},
        **{"recordsOutPerSecond": 9.0 * number, "bytesIn": 10_000 * number, "bytesOut": 9_000 * number},
        **{"busy": number % 10 / 10, "backpressured": 0.05, "watermark": START, "stateBytes": 1_000_000 * number},
    }


def graph() -> dict[str, Any]:
    """Twenty levels of ten chains; each chain sends to two of the next level."""
    width = VERTICES // LEVELS
    vertices = [
        {
            **{"id": id_of(number), "name": f"operator {number}", "level": number // width},
            **{"parallelism": PARALLELISM, "maxParallelism": 128, "load": load(number), "busiest": 0.9},
            "pendingRecords": None,
            "operators": [{"id": id_of(number), "name": f"operator {number}", "kind": "operator"}],
        }
        for number in range(VERTICES)
    ]
    edges = [
        {"source": id_of(number), "target": id_of(target), "partitioner": "HASH"}
        for number in range(VERTICES - width)
        for target in {number + width, (number // width + 1) * width + (number + 1) % width}
    ]
    return {"now": START + 60_000, "slots": PARALLELISM, "vertices": vertices, "edges": edges}


def job(number: int) -> dict[str, Any]:
    return {
        **{"jid": id_of(number), "name": f"job {number}", "start-time": START + number, "end-time": -1},
        **{"duration": 60_000, "state": "RUNNING", "tasks": {"total": VERTICES * PARALLELISM // JOBS}},
        **{"job-type": "STREAMING", "isStoppable": True, "now": START + 60_000},
    }


@pytest.fixture(scope="module")
def large_cluster() -> Iterator[str]:
    application = FastAPI()
    answers: dict[str, Any] = {
        "/overview": {
            **{"taskmanagers": 1, "slots-total": 1000, "slots-available": 0, "jobs-running": JOBS},
            **{"jobs-finished": 0, "jobs-cancelled": 0, "jobs-failed": 0},
        },
        "/jobs/overview": {"jobs": [job(number) for number in range(JOBS)]},
        "/jobs/{job_id}": job(1),
        "/jobs/{job_id}/millstream/graph": graph(),
        "/jobs/{job_id}/millstream/epochs": {"total": 0, "averageDuration": 0, "epochs": []},
        "/jobs/{job_id}/millstream/vertices/{vertex}": {
            "subtasks": [load(number) for number in range(1_000)],
            "operators": [],
            "hotKeys": [],
        },
        "/jobs/{job_id}/millstream/vertices/{vertex}/dropped": [],
        "/jobs/{job_id}/metrics/history": {"timestamps": [], "vertices": {}},
    }
    for path, answer in answers.items():
        application.add_api_route(path, lambda answer=answer: answer, response_model=None)
    application.include_router(ui.create_router())
    server = RestServer.start(application, "127.0.0.1", "0")
    yield server.address
    server.stop()


def test_a_large_cluster_is_drawn(browser: Browser, large_cluster: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(large_cluster)
    expect(page.locator("tbody tr")).to_have_count(JOBS)
    paint = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    figures = {"first paint of the overview": page.evaluate(paint)}

    page.goto(f"{large_cluster}/?graph#/jobs/{id_of(1)}/graph")
    expect(page.locator("svg .vertex")).to_have_count(VERTICES)
    expect(page.locator("svg .edge")).to_have_count(2 * (VERTICES - VERTICES // LEVELS))
    figures |= {"first paint of the graph": page.evaluate(paint), "graph drawn": page.evaluate("performance.now()")}
    page.get_by_role("button", name="operator 7, parallelism").focus()
    page.keyboard.press("Enter")
    panel = page.get_by_role("region", name="Operator operator 7")
    expect(panel.get_by_role("region", name="Subtasks").locator("tbody tr")).to_have_count(1_000)
    assert problems == []
    print({name: f"{milliseconds:.0f} ms" for name, milliseconds in figures.items()})  # shown with pytest -s
    page.close()
