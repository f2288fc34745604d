"""A cluster that is reached over REST: its jobs, their savepoints and their end.

Promises: an answer with an error is raised with its text; a cluster that cannot be reached is an error that names its
address. Works with the REST server of a driver and with Flink's.
Does not know: the command line."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

from millstream.errors import ExternalError, UserError

_ANSWER_SECONDS = 30.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 2.0  # seconds between two polls, as in Flink's clients


class Unreachable(ExternalError):
    """There is no REST server at the address."""

    def __init__(self, address: str, reason: object) -> None:
        super().__init__(
            f"no cluster answers at {address}: {reason}",
            hint="start the job with -D rest.bind-port=8081, or name the address with -m HOST:PORT",
        )


class Refused(UserError):
    """The cluster refused a request."""

    def __init__(self, status: int, texts: list[str]) -> None:
        self.status = status
        super().__init__("; ".join(texts))


@dataclass(frozen=True)
class RemoteJob:
    """A job in the list of a cluster. Times are milliseconds since 1970; `end` is -1 while the job runs."""

    id: str
    name: str
    state: str
    start: int
    end: int
    duration: int
    tasks: dict[str, int]


class RemoteCluster:
    """The client of a cluster."""

    def __init__(self, address: str) -> None:
        """`address` is HOST:PORT or a URL."""
        self._url = (address if "://" in address else f"http://{address}").rstrip("/")

    def list_jobs(self) -> list[RemoteJob]:
        """Return the jobs, oldest first."""
        jobs = [
            RemoteJob(
                job["jid"],
                job["name"],
                job["state"],
                job["start-time"],
                job["end-time"],
                job["duration"],
                job["tasks"],
            )
            for job in self._request("GET", "/jobs/overview")["jobs"]
        ]
        return sorted(jobs, key=lambda job: job.start)

    def cancel(self, job: str) -> None:
        """Cancel a job."""
        self._request("PATCH", f"/jobs/{job}?mode=cancel")

    def savepoint(
        self, job: str, directory: str | None = None, *, form: str | None = None, cancel: bool = False
    ) -> str:
        """Write a savepoint of a job, cancel the job afterwards if `cancel`, and return the path of the savepoint."""
        body = {"target-directory": directory, "formatType": form, "cancel-job": cancel}
        trigger = self._request("POST", f"/jobs/{job}/savepoints", body)["request-id"]
        return str(self._poll(f"/jobs/{job}/savepoints/{trigger}")["location"])

    def stop(self, job: str, directory: str | None = None, *, form: str | None = None, drain: bool = False) -> str:
        """Stop a job with a savepoint, and return its path."""
        body = {"targetDirectory": directory, "formatType": form, "drain": drain}
        trigger = self._request("POST", f"/jobs/{job}/stop", body)["request-id"]
        return str(self._poll(f"/jobs/{job}/savepoints/{trigger}")["location"])

    def _poll(self, path: str) -> dict[str, Any]:
        pause = _FIRST_PAUSE
        while (answer := self._request("GET", path))["status"]["id"] != "COMPLETED":
            time.sleep(pause)
            pause = min(_LONGEST_PAUSE, pause * 2)
        operation: dict[str, Any] = answer["operation"]
        if failure := operation.get("failure-cause"):  # Flink's own server reports failures in the answer
            raise Refused(500, [failure.get("stack-trace") or failure.get("class") or "the operation failed"])
        return operation

    def _request(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps({key: value for key, value in body.items() if value is not None})
        request = urllib.request.Request(
            f"{self._url}/v1{path}",
            None if data is None else data.encode(),
            {"Content-Type": "application/json"},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=_ANSWER_SECONDS) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refused:
            with refused:
                raise Refused(refused.code, _read_errors(refused)) from None
        except (OSError, ValueError) as problem:
            raise Unreachable(self._url, getattr(problem, "reason", problem)) from None


def _read_errors(answer: urllib.error.HTTPError) -> list[str]:
    try:
        return [str(text) for text in json.load(answer)["errors"]]
    except (ValueError, KeyError, TypeError):
        return [f"HTTP status {answer.code}"]
