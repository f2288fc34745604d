"""Any request to the REST server is answered without an internal error, and none without the token has an effect."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from fastapi import FastAPI
from openapi_requests import REQUESTS, send_again, send_requests
from rest_cluster import start_job, wait_for

from millstream.client.job_client import JobClient
from millstream.cluster import entrypoint
from millstream.cluster.dispatcher import Dispatcher
from millstream.cluster.rest.application import create_application
from millstream.cluster.rest.context import RestContext
from millstream.cluster.session.driver import SessionDriver
from millstream.cluster.session.store import ProgramStore

TOKEN = "a token of the test"
WITH_TOKEN = {"Authorization": f"Bearer {TOKEN}"}


class Jobs:
    """A job that runs; another one takes its place when it has ended."""

    def __init__(self, directory: Path) -> None:
        self._directory, self._numbers = directory, itertools.count()
        self.client = self._start()

    def _start(self) -> JobClient:
        client = start_job(self._directory, f"sums {next(self._numbers)}")
        job = entrypoint.DISPATCHER.job(str(client.get_job_id()))
        wait_for(lambda: job.statistics().checkpoints)
        return client

    def job(self) -> Any:
        if self.client.get_job_status().result().is_terminal_state():
            self.client = self._start()
        return entrypoint.DISPATCHER.job(str(self.client.get_job_id()))

    def path_parameters(self) -> dict[str, str]:
        job = self.job()
        return {
            "job_id": job.id,
            "vertex_id": job.plan().vertices[0].task.vertex,
            "number": str(job.statistics().checkpoint_count),
            "subtask": "0",
            "taskmanager_id": "spark",
            "name": "spark",
            "attempt": "0",
        }

    def stop(self) -> None:
        self.client.cancel()
        self.client.wait(30)


def keep_paths_in(directory: Path) -> Callable[[schemathesis.Case], None]:
    """Return a change of requests: savepoints are written to and deleted from a directory of the test only."""

    def change(case: schemathesis.Case) -> None:
        for key in ("target-directory", "targetDirectory", "savepoint-path"):
            if isinstance(case.body, dict) and isinstance(case.body.get(key), str):
                case.body[key] = str(directory / case.body[key].replace("/", "_")[:50])

    return change


@pytest.fixture
def jobs(tmp_path: Path, inline_engine: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    monkeypatch.setattr(entrypoint, "DISPATCHER", Dispatcher())
    jobs = Jobs(tmp_path)
    yield jobs
    jobs.stop()


def create(session: Any, dispatcher: Dispatcher) -> FastAPI:
    return create_application(RestContext(dispatcher, entrypoint.SystemClock(), entrypoint.new_id, TOKEN, session))


def test_requests_for_jobs(jobs: Jobs, tmp_path: Path) -> None:
    application = create(None, entrypoint.DISPATCHER)
    change = keep_paths_in(tmp_path / "savepoints")
    requests = send_requests(application, jobs.path_parameters, headers=WITH_TOKEN, change=change)
    assert all(requests.statuses[status] > 0 for status in (200, 202, 400, 404)), requests.statuses

    job, known = jobs.job(), entrypoint.DISPATCHER.jobs()
    before = job.plan()
    for case in requests.sent:
        if "job_id" in case.path_parameters:
            case.path_parameters["job_id"] = job.id
    assert list(send_again(requests, {"Authorization": "Bearer another"})) == [401]
    assert entrypoint.DISPATCHER.jobs() == known
    assert (job.statistics().status.name, job.plan()) == ("RUNNING", before)


def test_requests_to_a_session_cluster(tmp_path: Path) -> None:
    numbers = itertools.count(1)
    with ExitStack() as closing:
        driver = SessionDriver(
            ProgramStore(str(tmp_path / "programs")),
            tmp_path,
            slots=3,
            settings={},
            variables=dict,
            clock=entrypoint.SystemClock(),
            new_id=lambda: f"{next(numbers):032x}",
            new_token=lambda: "the token of a process",
            recovers=False,
            upload_limit=100_000,
        )
        closing.callback(driver.close)

        def path_parameters() -> Mapping[str, str]:
            uploads = driver.uploads() or [driver.add_upload("archive.zip", b"this is no program")]
            return {"job_id": "0" * 32, "upload_id": uploads[0].id}

        only = "" if REQUESTS else "/v1/(jars|applications|cluster|jobs/overview|jobmanager/logs)"
        requests = send_requests(create(driver, Dispatcher()), path_parameters, headers=WITH_TOKEN, only=only)
        assert driver.programs() == []
        uploads = driver.uploads()
        assert list(send_again(requests, {})) == [401]
        assert driver.uploads() == uploads
    assert all(requests.statuses[status] > 0 for status in (200, 400, 404)), requests.statuses
