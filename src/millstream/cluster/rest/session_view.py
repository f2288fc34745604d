"""The interface of a session cluster for the REST resources.

Promises: its methods may be called from any thread.
Does not know: how the cluster runs programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from millstream.cluster.session.machine import ProgramStatus


@dataclass(frozen=True)
class Submission:
    """A program to run: the id of its upload, the arguments as for Flink's PythonDriver, and options."""

    upload: str
    arguments: Sequence[str]
    settings: dict[str, str]


@dataclass(frozen=True)
class ProgramView:
    """The state of a program at one time. Times are milliseconds since 1970; `end` is -1 while it runs."""

    id: str
    name: str
    status: ProgramStatus
    start: int
    end: int
    restarts: int
    error: str | None
    jobs: tuple[str, ...]
    waits: dict[str, str]


@dataclass(frozen=True)
class Upload:
    """An uploaded file."""

    id: str
    name: str
    time: int


@dataclass(frozen=True)
class ForwardedAnswer:
    """A response of the REST server of a program, or of its archive."""

    status: int
    media_type: str
    body: bytes


class SessionView(Protocol):
    """The session cluster."""

    @property
    def logs(self) -> Path:
        """The directory of log files."""

    @property
    def upload_limit(self) -> int:
        """The largest upload, in bytes."""

    def slots(self) -> tuple[int, int]:
        """Return how many slots there are, and how many are free."""

    def add_upload(self, name: str, content: bytes) -> Upload:
        """Keep an uploaded program."""

    def uploads(self) -> list[Upload]:
        """Return the uploaded programs."""

    def delete_upload(self, upload: str) -> None:
        """Delete an uploaded program."""

    def submit(self, submission: Submission) -> str:
        """Start a program, and return its id."""

    def programs(self) -> list[ProgramView]:
        """Return all programs, oldest first."""

    def program(self, program: str) -> ProgramView:
        """Return a program."""

    def cancel(self, program: str) -> None:
        """Cancel the jobs of a program."""

    def job_overviews(self) -> list[dict[str, Any]]:
        """Return all jobs, in the form of /jobs/overview."""

    def forward(self, method: str, path: str, body: bytes) -> ForwardedAnswer | None:
        """Return the answer to a request for `/jobs/ID...`; None if there is no such job."""

    def forward_to_workspace(self, method: str, path: str, body: bytes) -> ForwardedAnswer:
        """Return the answer of the SQL workspace to a request for `/sql/...`."""

    def shut_down(self) -> None:
        """End the cluster soon; programs that can be recovered continue when it starts again."""
