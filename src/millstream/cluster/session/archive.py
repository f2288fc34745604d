"""Archives of ended jobs: the responses of their REST resources, in the format of Flink's history server.

Promises: an archive is a JSON object `{"archive": [{"path": ..., "json": text}]}`; `find` returns the original
response.
Does not know: HTTP, storage."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

Fetch = Callable[[str], Any]  # returns the response to a GET request for a path; None if there is none

_JOB_PATHS = (
    "",
    "/accumulators",
    "/checkpoints",
    "/checkpoints/config",
    "/config",
    "/exceptions",
    "/execution-result",
    "/jobmanager/config",
    "/metrics",
    "/millstream/epochs",
    "/millstream/graph",
    "/millstream/options",
    "/millstream/watermarks",
    "/plan",
    "/status",
)
_VERTEX_PATHS = ("", "/accumulators", "/backpressure", "/subtasktimes", "/taskmanagers", "/watermarks")


def archive_jobs(jobs: Sequence[dict[str, Any]], fetch: Fetch, operations: Sequence[str] = ()) -> dict[str, Any]:
    """Return the archive of jobs, which are entries of /jobs/overview. `operations` are the paths of savepoints and
    other operations whose results clients may still poll."""
    entries = [{"path": "/jobs/overview", "json": json.dumps({"jobs": list(jobs)})}]
    entries += [
        {"path": path, "json": json.dumps(answer)} for path in operations if (answer := fetch(path)) is not None
    ]
    for job in jobs:
        root = f"/jobs/{job['jid']}"
        details = fetch(root)
        vertices = [] if details is None else [vertex["id"] for vertex in details["vertices"]]
        paths = [root + path for path in _JOB_PATHS]
        paths += [f"{root}/vertices/{vertex}{path}" for vertex in vertices for path in _VERTEX_PATHS]
        paths += [f"{root}/millstream/vertices/{vertex}" for vertex in vertices]
        answers = {path: fetch(path) for path in paths}
        entries += [
            {"path": path, "json": json.dumps(answer)} for path, answer in answers.items() if answer is not None
        ]
    return {"archive": entries}


def find(archive: dict[str, Any], path: str) -> str | None:
    """Return the archived response for a path, as JSON text; None if there is none."""
    return next((entry["json"] for entry in archive["archive"] if entry["path"] == path), None)


def job_overviews(archive: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the jobs of an archive."""
    jobs: list[dict[str, Any]] = json.loads(find(archive, "/jobs/overview") or '{"jobs": []}')["jobs"]
    return jobs
