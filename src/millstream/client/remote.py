"""The client of a cluster over REST: lists, cancels and rescales jobs, writes savepoints, and runs programs.

Promises: an error response is raised with its text; a cluster that cannot be reached is an error that names its
address. It also works with Flink's own server, as far as that has the same resources.
Does not know: the command line."""

from __future__ import annotations

import json
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any

from millstream import options
from millstream.errors import ExternalError, UserError

_ANSWER_SECONDS = 120.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.01, 2.0  # seconds between two polls, as in Flink's clients
_BOUNDARY = "millstream-upload-7d1f0c5e9b3a4d2f"


class Unreachable(ExternalError):
    """There is no REST server at the address."""

    def __init__(self, address: str, reason: object) -> None:
        super().__init__(
            f"no cluster answers at {address}: {reason}",
            hint="start one with millstream cluster start, or a job with -D rest.bind-port=8081; -m HOST:PORT names "
            "another address",
        )


class NoTrust(UserError):
    """The trusted certificates cannot be read."""

    def __init__(self, path: str, problem: OSError) -> None:
        super().__init__(
            f"the trusted certificates in {path} cannot be read: {problem}",
            hint=f"name a PEM file: {options.REST_TLS_CA.key}",
        )


class Refused(UserError):
    """The cluster refused a request."""

    def __init__(self, status: int, texts: list[str]) -> None:
        self.status = status
        super().__init__("; ".join(texts))


@dataclass(frozen=True)
class RemoteJob:
    """A job in the list of a cluster. Times are milliseconds since 1970; `end` is -1 while the job runs. `waiting` is
    why it has not started."""

    id: str
    name: str
    state: str
    start: int
    end: int
    duration: int
    tasks: dict[str, int]
    waiting: str | None = None


class RemoteCluster:
    """The client of a cluster."""

    def __init__(
        self, address: str, token: str | None = None, *, tls: bool = False, ca_file: str | None = None
    ) -> None:
        """`address` is HOST:PORT or a URL; with `tls`, HOST:PORT is reached by https. `ca_file` has the certificates
        that are trusted, if they are not those of the operating system."""
        self._url = to_url(address, tls=tls)
        self._tls = tls_context(self._url, ca_file)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    @property
    def url(self) -> str:
        """The URL of the server."""
        return self._url

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
                job.get("waiting"),
            )
            for job in self.get("/jobs/overview")["jobs"]
        ]
        return sorted(jobs, key=lambda job: job.start)

    def overview(self) -> dict[str, Any]:
        """Return the numbers of slots and jobs."""
        overview: dict[str, Any] = self.get("/overview")
        return overview

    def cancel(self, job: str) -> None:
        """Cancel a job."""
        self._request("PATCH", f"/jobs/{job}?mode=cancel")

    def savepoint(
        self, job: str, directory: str | None = None, *, form: str | None = None, cancel: bool = False
    ) -> str:
        """Write a savepoint of a job, cancel the job afterwards if `cancel`, and return the path of the savepoint."""
        return str(self._poll(self.trigger_savepoint(job, directory, form=form, cancel=cancel))["location"])

    def trigger_savepoint(
        self, job: str, directory: str | None = None, *, form: str | None = None, cancel: bool = False
    ) -> str:
        """Request a savepoint, and return the path that is polled for its result."""
        body = {"target-directory": directory, "formatType": form, "cancel-job": cancel}
        return f"/jobs/{job}/savepoints/{self._request('POST', f'/jobs/{job}/savepoints', body)['request-id']}"

    def dispose_savepoint(self, path: str) -> None:
        """Delete a savepoint that the cluster can access."""
        trigger = self._request("POST", "/savepoint-disposal", {"savepoint-path": path})["request-id"]
        self._poll(f"/savepoint-disposal/{trigger}")

    def stop(self, job: str, directory: str | None = None, *, form: str | None = None, drain: bool = False) -> str:
        """Stop a job with a savepoint, and return its path."""
        body = {"targetDirectory": directory, "formatType": form, "drain": drain}
        trigger = self._request("POST", f"/jobs/{job}/stop", body)["request-id"]
        return str(self._poll(f"/jobs/{job}/savepoints/{trigger}")["location"])

    def checkpoint(self, job: str, *, full: bool = False) -> int:
        """Take a checkpoint of a job now, and return its number."""
        trigger = self._request(
            "POST", f"/jobs/{job}/checkpoints", {"checkpointType": "FULL" if full else "CONFIGURED"}
        )
        return int(self._poll(f"/jobs/{job}/checkpoints/{trigger['request-id']}")["checkpointId"])

    def rescale(self, job: str, parallelism: int | Mapping[str, int]) -> int:
        """Change the parallelism of a job, of all its operators or of those with these uids; return its slots."""
        body = {"parallelism": parallelism if isinstance(parallelism, int) else dict(parallelism)}
        trigger = self._request("POST", f"/jobs/{job}/rescale", body)["request-id"]
        return int(self._poll(f"/jobs/{job}/rescale/{trigger}")["slots"])

    # ------------------------------------------------------------------------------------------------------- programs

    def upload(self, name: str, content: bytes) -> str:
        """Upload a program, and return the id of the upload."""
        quoted = urllib.parse.quote(name, safe=" +-.")
        head = f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="jarfile"; filename="{quoted}"\r\n\r\n'
        form = head.encode() + content + f"\r\n--{_BOUNDARY}--\r\n".encode()
        answer = self._send("POST", "/jars/upload", form, f"multipart/form-data; boundary={_BOUNDARY}")
        return str(answer["filename"]).rpartition("/")[2]

    def run(self, upload: str, arguments: Sequence[str], settings: Mapping[str, str]) -> str:
        """Run an uploaded program, and return its id."""
        body = {"programArgsList": list(arguments), "flinkConfiguration": dict(settings)}
        path = f"/jars/{urllib.parse.quote(upload)}/run-application"
        return str(self._request("POST", path, body)["applicationId"])

    def program(self, program: str) -> dict[str, Any]:
        """Return a program and its jobs."""
        details: dict[str, Any] = self.get(f"/applications/{program}")
        return details

    def delete_upload(self, upload: str) -> None:
        """Delete an uploaded program; programs that run it are not affected."""
        self._request("DELETE", f"/jars/{urllib.parse.quote(upload)}")

    def shut_down(self) -> None:
        """End a session cluster."""
        self._request("DELETE", "/cluster")

    # ------------------------------------------------------------------------------------------------------- requests

    def get(self, path: str) -> Any:
        """Return the answer to a GET request."""
        return self._request("GET", path)

    def read_text(self, path: str, offset: int = 0) -> Iterator[bytes]:
        """Return a text, such as a log file, from an offset in bytes on; nothing if it is not longer."""
        request = urllib.request.Request(f"{self._url}/v1{path}", headers=dict(self._headers))
        if offset:
            request.add_header("Range", f"bytes={offset}-")
        try:
            with urllib.request.urlopen(request, timeout=_ANSWER_SECONDS, context=self._tls) as answer:
                while part := answer.read(1 << 16):
                    yield part
        except urllib.error.HTTPError as refused:
            with refused:
                if refused.code != 416:  # the offset is the end of the text
                    raise Refused(refused.code, _read_errors(refused)) from None
        except (OSError, HTTPException) as problem:
            raise Unreachable(self._url, getattr(problem, "reason", problem)) from None

    def pass_on(self, method: str, path: str, body: bytes, content_type: str | None) -> tuple[int, str, bytes]:
        """Send a request that another client made; return the status, the media type and the content of the answer."""
        headers = {**self._headers, **({} if content_type is None else {"Content-Type": content_type})}
        request = urllib.request.Request(f"{self._url}{path}", body or None, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=_ANSWER_SECONDS, context=self._tls) as answer:
                return answer.status, answer.headers.get("Content-Type", "text/plain"), answer.read()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.headers.get("Content-Type", "text/plain"), refused.read()
        except (OSError, HTTPException) as problem:
            raise Unreachable(self._url, getattr(problem, "reason", problem)) from None

    def _poll(self, path: str) -> dict[str, Any]:
        pause = _FIRST_PAUSE
        while (answer := self.get(path))["status"]["id"] != "COMPLETED":
            time.sleep(pause)
            pause = min(_LONGEST_PAUSE, pause * 2)
        operation: dict[str, Any] = answer["operation"]
        failure = operation.get("failure-cause") or operation.get("failureCause")
        if failure:  # Flink's own server reports failures in the answer
            raise Refused(500, [failure.get("stack-trace") or failure.get("class") or "the operation failed"])
        return operation

    def _request(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps({key: value for key, value in body.items() if value is not None})
        return self._send(method, path, None if data is None else data.encode(), "application/json")

    def _send(self, method: str, path: str, data: bytes | None, content_type: str) -> Any:
        headers = {**self._headers, "Content-Type": content_type}
        request = urllib.request.Request(f"{self._url}/v1{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=_ANSWER_SECONDS, context=self._tls) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refused:
            with refused:
                raise Refused(refused.code, _read_errors(refused)) from None
        except (OSError, HTTPException, ValueError) as problem:
            raise Unreachable(self._url, getattr(problem, "reason", problem)) from None


def to_url(address: str, *, tls: bool) -> str:
    """Return the URL of a server that is named by HOST:PORT or by a URL."""
    return (address if "://" in address else f"http{'s' if tls else ''}://{address}").rstrip("/")


def tls_context(url: str, ca_file: str | None) -> ssl.SSLContext | None:
    """Return how the certificate of a server is verified; None for a server without TLS.

    Raises:
        NoTrust: The file of trusted certificates cannot be read.

    """
    if not url.startswith("https:"):
        return None
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as problem:
        raise NoTrust(str(ca_file), problem) from problem


def _read_errors(answer: urllib.error.HTTPError) -> list[str]:
    try:
        return [str(text) for text in json.load(answer)["errors"]]
    except (ValueError, KeyError, TypeError):
        return [f"HTTP status {answer.code}"]
