"""Runs a program in a session cluster, and replaces it when one of its files is saved.

Promises: the old program has ended before the new one starts. After a failure, the program starts again when a file is
saved. With a directory for savepoints, the job of the new program continues from a savepoint of the old one; if that
job cannot be stopped, from the previous savepoint.
Does not know: who starts the cluster."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from millstream import options
from millstream.cluster.session.driver import SessionDriver

_LOOK_SECONDS = 0.3
_STOP_SECONDS, _END_SECONDS = 60.0, 5.0
_SUFFIXES = (".py", ".sql", ".yaml", ".yml", ".toml")
_MOST_FILES = 5_000

Files = dict[Path, tuple[int, int]]


class Reloader:
    """One program and the files below its directory that contain Python code or configuration."""

    def __init__(
        self,
        driver: SessionDriver,
        path: Path,
        arguments: Sequence[str],
        savepoints: str | None,
        show: Callable[[str], None],
    ) -> None:
        """`savepoints` is a directory for savepoints, if state is kept; `show` prints a text for the user."""
        self._driver, self._path, self._arguments = driver, path.resolve(), list(arguments)
        self._savepoints, self._show = savepoints, show
        self._savepoint: str | None = None
        self._program = ""
        self._is_reported = False
        self._log_offset = 0

    def run(self) -> None:
        """Start the program, and replace it until the cluster ends."""
        files = list_files(self._path.parent)
        self._start()
        while not self._driver.is_shut_down.wait(_LOOK_SECONDS):
            self._report()
            if (now := list_files(self._path.parent)) == files:
                continue
            while (settled := list_files(self._path.parent)) != now:  # an editor may write several files
                now = settled
                time.sleep(_LOOK_SECONDS)
            changed = sorted(path for path in files.keys() | now.keys() if files.get(path) != now.get(path))
            self._show(f"--- {changed[0].relative_to(self._path.parent)} was saved: {self._path.name} starts again")
            files = now
            self._end()
            self._start()

    def _start(self) -> None:
        settings = {}
        if self._savepoint is not None:
            settings = {options.RECOVERY_PATH.key: self._savepoint, options.RECOVERY_IGNORE_UNCLAIMED.key: "true"}
        process = {"file": str(self._path), "arguments": self._arguments, "settings": settings}
        self._program = self._driver.run_local(self._path.name, process)
        self._is_reported, self._log_offset = False, 0

    def _report(self) -> None:
        """Show the output of the program, and how it ended."""
        view = self._driver.program(self._program)
        log = self._driver.logs / f"{self._program}.log"
        if log.exists():
            with log.open("rb") as file:
                file.seek(self._log_offset)
                text = file.read()
            whole = text[: text.rfind(b"\n") + 1]
            self._log_offset += len(whole)
            if whole:
                self._show(whole.decode("utf-8", "replace"))
        if view.status.is_final and not self._is_reported:
            self._is_reported = True
            reason = f": {view.error.strip().splitlines()[-1]}" if view.error else ""
            self._show(f"--- {view.name} {view.status.value.lower()}{reason}")

    def _end(self) -> None:
        """End the program, with a savepoint if state is kept."""
        if self._is_over():
            return
        if self._savepoints is not None:
            self._stop_job(self._savepoints)
        self._driver.cancel(self._program)
        if not self._wait_for(self._is_over, _END_SECONDS):
            self._driver.kill(self._program)
            self._wait_for(self._is_over, _END_SECONDS)

    def _stop_job(self, directory: str) -> None:
        """Stop the only running job of the program, and remember its savepoint."""
        overviews = self._driver.job_overviews()
        jobs = [job["jid"] for job in overviews if job["application-id"] == self._program and job["state"] == "RUNNING"]
        if len(jobs) != 1:
            self._show(f"--- state is not kept: {len(jobs)} jobs are running, and one is needed")
            return
        body = json.dumps({"targetDirectory": directory}).encode()
        request = self._ask("POST", f"/jobs/{jobs[0]}/stop", body).get("request-id")
        answer: dict[str, Any] = {}

        def is_complete() -> bool:
            nonlocal answer
            answer = self._ask("GET", f"/jobs/{jobs[0]}/savepoints/{request}")
            return "errors" in answer or answer["status"]["id"] == "COMPLETED"

        self._wait_for(is_complete, _STOP_SECONDS)
        location = (answer.get("operation") or {}).get("location")
        if location is None:
            self._show(f"--- the job was not stopped: {'; '.join(answer.get('errors', ['no answer in time']))}")
        else:
            self._savepoint = location

    def _ask(self, method: str, path: str, body: bytes = b"") -> dict[str, Any]:
        answer = self._driver.forward(method, path, body)
        return {"errors": ["the job has ended"]} if answer is None else json.loads(answer.body)

    def _is_over(self) -> bool:
        return self._driver.program(self._program).status.is_final

    def _wait_for(self, is_done: Callable[[], bool], seconds: float) -> bool:
        until = time.monotonic() + seconds
        while not (done := is_done()) and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)
        return done


def list_files(directory: Path) -> Files:
    """Return the files to watch below a directory, with their times and sizes. Hidden directories and virtual
    environments are left out."""
    files: Files = {}
    for path in _walk(directory):
        try:
            status = path.stat()
        except OSError:  # the file is being replaced
            continue
        files[path] = status.st_mtime_ns, status.st_size
        if len(files) == _MOST_FILES:
            break
    return files


def _walk(directory: Path) -> Iterator[Path]:
    try:
        entries = sorted(directory.iterdir())
    except OSError:
        return
    if any(entry.name == "pyvenv.cfg" for entry in entries):
        return
    for entry in entries:
        if entry.name.startswith((".", "__pycache__", "node_modules")):
            continue
        if entry.is_dir() and not entry.is_symlink():
            yield from _walk(entry)
        elif entry.suffix in _SUFFIXES:
            yield entry
