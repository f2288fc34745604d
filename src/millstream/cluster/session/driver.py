"""The driver of a session cluster: carries out the actions of its machine.

Promises: a program is stored before it starts, and programs of the store that have not ended are started again; a
request to cancel one is stored, too. The methods may be called from any thread, and events are handled one after
another. A program that does not respond does not delay others. The newest programs that have ended are kept.
Does not know: HTTP servers, Spark, how leaders are elected."""

from __future__ import annotations

import json
import logging
import shutil
import threading
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path
from typing import Any

from millstream import options
from millstream.cluster.rest.session_view import ForwardedAnswer, ProgramView, Submission, Upload
from millstream.cluster.session import archive
from millstream.cluster.session.arguments import parse_arguments, resolve_paths
from millstream.cluster.session.errors import NoSuchProgram, NoSuchUpload, TooMany
from millstream.cluster.session.machine import (
    Action,
    Answer,
    Archive,
    CancelJobs,
    CancelRequested,
    Event,
    Forgotten,
    JobEnded,
    ProgramEnded,
    ProgramLost,
    ProgramStatus,
    Session,
    SlotsRequested,
    Start,
    Submitted,
    on_event,
)
from millstream.cluster.session.process import PROGRAM_MODULE, WORKSPACE_MODULE, ProgramProcess
from millstream.cluster.session.slots import Refused, SlotPool, SlotRequest, Waiting
from millstream.cluster.session.store import ProgramStore, write_history
from millstream.cluster.session.uploads import check_name, unpack
from millstream.errors import ExternalError, UserError
from millstream.times import Clock

_log = logging.getLogger("millstream.session")

_WORKSPACE = "SQL workspace"  # the name of the program of the SQL workspace
_ANSWER_SECONDS = 60.0
_MOST_PROGRAMS, _MOST_UPLOADS, _KEPT_ENDED = 100, 100, 100
_KEPT_OPERATIONS = 20  # the number of the newest savepoints and other operations of a program that are archived
_CANCEL_CHECK_SECONDS = 0.5
_IDLE_CANCEL_MS = 30_000  # a cancelled program without jobs is killed after this time
_MAX_CANCEL_MS = 600_000  # any cancelled program is killed after this time
_ARCHIVE_RETRY_SECONDS = 5.0
_ACCEPTED = 202
_CANCELLABLE = ("INITIALIZING", "CREATED", "RUNNING", "RESTARTING")  # states of jobs that nobody has cancelled
_ENDED = ("FAILED", "CANCELED", "FINISHED", "SUSPENDED")


@dataclass
class _Hosted:
    """A program with its description, its process, which runs `module`, and its archive when it has ended. A program
    that is not in the store has `local`: the description for its process."""

    description: dict[str, Any]
    start: int
    end: int = -1
    process: ProgramProcess | None = None
    jobs: dict[str, None] = field(default_factory=dict)
    # the paths of the results of operations
    operations: deque[str] = field(default_factory=lambda: deque(maxlen=_KEPT_OPERATIONS))
    archive: dict[str, Any] | None = None
    local: dict[str, Any] | None = None
    module: str = PROGRAM_MODULE


class SessionDriver:
    """Programs of a session cluster."""

    def __init__(
        self,
        store: ProgramStore,
        directory: Path,
        *,
        slots: int,
        settings: Mapping[str, str],
        variables: Callable[[], dict[str, str]],
        clock: Clock,
        new_id: Callable[[], str],
        new_token: Callable[[], str],
        recovers: bool,
        archive_directory: str | None = None,
        upload_limit: int = options.REST_MAX_UPLOAD.default,
    ) -> None:
        """`directory` is for local files; `settings` are defaults of all programs; `variables` returns the environment
        variables with which a process attaches to Spark; `archive_directory` is that of a history server."""
        self._store, self._directory, self._settings, self._variables = store, directory, dict(settings), variables
        self._clock, self._new_id, self._new_token = clock, new_id, new_token
        self._lock = threading.RLock()
        self._session = Session(SlotPool(slots), recovers=recovers)
        self._hosted: dict[str, _Hosted] = {}
        self._uploads: dict[str, tuple[Upload, bytes]] = {}
        self._workspace = ""  # the id of the program of the SQL workspace, which is not in the store
        self._archive_directory, self.upload_limit = archive_directory, upload_limit
        self.is_shut_down = threading.Event()
        self.logs = directory / "logs"
        self.logs.mkdir(parents=True, exist_ok=True)

    def recover(self) -> None:
        """Start the programs in the store that have not ended, and list those that have ended."""
        with self._lock:
            ended = self._store.archived()
            newest = sorted(ended.items(), key=lambda entry: int(entry[1]["end"]))[-_KEPT_ENDED:]
            for program, archived in newest:
                hosted = _Hosted(archived["description"], archived["start"], archived["end"], archive=archived)
                hosted.jobs = dict.fromkeys(job["jid"] for job in archive.job_overviews(archived))
                self._hosted[program] = hosted
            for program, description in self._store.programs().items():
                if program not in ended:
                    self._hosted[program] = _Hosted(description, description["submitted"])
                    self._handle(Submitted(program))
                    if self._store.is_cancelled(program):
                        self._handle(CancelRequested(program))

    # ------------------------------------------------------------------------------------------- uploads and programs

    def add_upload(self, name: str, content: bytes) -> Upload:
        """Keep an uploaded program in memory."""
        plain = check_name(name)
        with self._lock:
            if len(self._uploads) >= _MOST_UPLOADS:
                msg = f"{_MOST_UPLOADS} uploaded programs are kept"
                raise TooMany(msg, hint="delete some of them: DELETE /jars/ID")
            upload = Upload(f"{self._new_id()}_{plain}", plain, self._clock.now())
            self._uploads[upload.id] = upload, content
            return upload

    def uploads(self) -> list[Upload]:
        """Return the uploaded programs."""
        with self._lock:
            return [upload for upload, _ in self._uploads.values()]

    def delete_upload(self, upload: str) -> None:
        """Delete an uploaded program."""
        with self._lock:
            if self._uploads.pop(upload, None) is None:
                raise NoSuchUpload(upload)

    def submit(self, submission: Submission) -> str:
        """Start a program, and return its id."""
        with self._lock:
            if submission.upload not in self._uploads:
                raise NoSuchUpload(submission.upload)
            running = [program for program in self._session.programs.values() if not program.status.is_final]
            if len(running) >= _MOST_PROGRAMS:
                msg = f"{_MOST_PROGRAMS} programs run"
                raise TooMany(msg, hint="wait until some of them have ended")
            upload, content = self._uploads[submission.upload]
            # invalid arguments are refused before anything is stored
            parse_arguments(submission.arguments, upload.name)
            program = self._new_id()
            description = {
                "upload": upload.name,
                "arguments": list(submission.arguments),
                "settings": dict(submission.settings),
                "submitted": self._clock.now(),
            }
            directory = self._directory / program
            unpack(upload.name, content, directory)
            try:
                resolve_paths(parse_arguments(submission.arguments, upload.name), directory)
            except UserError:
                shutil.rmtree(directory, ignore_errors=True)
                raise
            self._hosted[program] = _Hosted(description, self._clock.now())
            self._store.add(program, description, content)
            self._handle(Submitted(program))
            return program

    def run_local(self, name: str, process: Mapping[str, Any], module: str = PROGRAM_MODULE) -> str:
        """Start a program of this machine, and return its id. It is not in the store: it ends with the cluster.

        Args:
            name: The name of the program in lists.
            process: What its process needs to know: the `file` and `arguments` of a program, and `settings`.
            module: The module that the process runs.

        """
        with self._lock:
            program = self._new_id()
            settings = {**self._settings, **process.get("settings", {}), options.HA_TYPE.key: "NONE"}
            local = {"directory": str(Path.cwd()), **process, "settings": settings}
            description = {"upload": name, "submitted": self._clock.now()}
            self._hosted[program] = _Hosted(description, self._clock.now(), local=local, module=module)
            self._handle(Submitted(program))
            return program

    def cancel(self, program: str) -> None:
        """Cancel the jobs of a program, and end it. A program that has ended stays as it is."""
        with self._lock:
            hosted = self._require(program)
            if hosted.archive is None:
                if hosted.local is None:
                    self._store.cancel(program)
                self._handle(CancelRequested(program))

    def slots(self) -> tuple[int, int]:
        """Return how many slots there are, and how many are free."""
        with self._lock:
            return self._session.slots.total, self._session.slots.free

    def programs(self) -> list[ProgramView]:
        """Return all programs, oldest first."""
        with self._lock:
            views = [self.program(program) for program in self._hosted]
        return sorted(views, key=lambda view: view.start)

    def program(self, program: str) -> ProgramView:
        """Return a program."""
        with self._lock:
            hosted = self._require(program)
            known = self._session.programs.get(program)
            kept = hosted.archive
            name = hosted.description["upload"]
            if known is None:
                assert kept is not None
                status, restarts, error, waits = ProgramStatus(kept["status"]), kept["restarts"], kept["error"], {}
            else:
                status, restarts, error, waits = known.status, known.restarts, known.error, dict(known.waits)
            return ProgramView(
                program, name, status, hosted.start, hosted.end, restarts, error, tuple(hosted.jobs), waits
            )

    # --------------------------------------------------------------------------------------------------- jobs over REST

    def job_overviews(self) -> list[dict[str, Any]]:
        """Return all jobs, in the form of /jobs/overview."""
        with self._lock:
            hosted = dict(self._hosted)
        jobs = []
        for program, entry in hosted.items():
            answer = archive.job_overviews(entry.archive) if entry.archive is not None else _ask_for_jobs(entry.process)
            jobs += [{**job, "application-id": program} for job in answer]
        return sorted(jobs, key=lambda job: job["start-time"])

    def forward(self, method: str, path: str, body: bytes) -> ForwardedAnswer | None:
        """Return the answer of the process or of the archive of a job."""
        job = path.partition("?")[0].split("/")[2]
        with self._lock:
            owners = [hosted for hosted in self._hosted.values() if job in hosted.jobs]
        if not owners:
            return None
        owner = owners[-1]
        process = owner.process
        if owner.archive is None and process is not None and process.address is not None:
            try:
                answer = _ask(process, method, path, body)
            except OSError as problem:
                if owner.archive is None:  # otherwise it ended during the request
                    return _refuse(503, f"the process of the job does not answer: {problem}")
            else:
                if method == "POST" and (operation := _find_operation(path, answer)) is not None:
                    owner.operations.append(operation)
                return answer
        kept = None if owner.archive is None or method != "GET" else archive.find(owner.archive, path.partition("?")[0])
        if kept is not None:
            return ForwardedAnswer(200, "application/json", kept.encode())
        text = f"the job {job} has ended, or is being started: {method} {path}"
        return _refuse(404 if owner.archive is not None else 503, text)

    def forward_to_workspace(self, method: str, path: str, body: bytes) -> ForwardedAnswer:
        """Return the answer of the SQL workspace, whose process starts when a session is opened."""
        with self._lock:
            known = self._session.programs.get(self._workspace)
            if known is None or known.status is not ProgramStatus.RUNNING:
                if method != "POST" or not path.endswith("/sessions"):
                    return _refuse(404, "no session of the SQL workspace is open")
                self._workspace = self.run_local(_WORKSPACE, {}, WORKSPACE_MODULE)
            process = self._hosted[self._workspace].process
        try:
            if process is not None and process.wait_for_address(_ANSWER_SECONDS) is not None:
                return _ask(process, method, path, body)
            problem: object = "its process has not started; see the log of the cluster"
        except OSError as failure:
            problem = failure
        return _refuse(503, f"the SQL workspace does not answer: {problem}")

    # ----------------------------------------------------------------------------------------------- events and actions

    def kill(self, program: str) -> None:
        """Kill the process of a program."""
        with self._lock:
            process = self._require(program).process
        if process is not None:
            process.kill()

    def shut_down(self) -> None:
        """End the cluster soon."""
        self.is_shut_down.set()

    def close(self) -> None:
        """End all processes; programs stay in the store."""
        with self._lock:
            processes = [hosted.process for hosted in self._hosted.values() if hosted.process is not None]
            for hosted in self._hosted.values():
                hosted.process = None
        for process in processes:
            process.kill()

    def restart_programs(self, reason: str) -> None:
        """Start all programs again: their Spark is lost."""
        with self._lock:
            running = [(program, hosted.process) for program, hosted in self._hosted.items() if hosted.archive is None]
        for program, process in running:
            if process is not None:
                self._lose(program, process, reason)

    def _handle(self, event: Event) -> None:
        with self._lock:
            self._session, actions = on_event(self._session, event)
            for action in actions:
                self._carry_out(action)

    def _carry_out(self, action: Action) -> None:
        match action:
            case Start(program=program):
                self._start(program)
            case Answer(request=request, verdict=verdict):
                process = self._hosted[request.program].process
                if process is not None:
                    reason = verdict.reason if isinstance(verdict, Waiting | Refused) else ""
                    process.send(type="slots", job=request.job, verdict=type(verdict).__name__.lower(), reason=reason)
            case CancelJobs(program=program):
                process = self._hosted[program].process
                if process is not None:
                    threading.Thread(
                        target=_cancel, args=(process, self._clock), name=f"cancel-{program}", daemon=True
                    ).start()
            case Archive(program=program):
                threading.Thread(target=self._archive, args=(program,), name=f"archive-{program}").start()

    def _start(self, program: str) -> None:
        hosted = self._hosted[program]
        try:
            hosted.process = ProgramProcess.start(
                hosted.local or self._describe_program(program),
                environment={**self._variables(), "MILLSTREAM_PROGRAM": program},
                log=self.logs / f"{program}.log",
                token=self._new_token(),
                on_message=lambda process, message: self._on_message(program, process, message),
                on_end=lambda process, reason: self._lose(program, process, reason),
                module=hosted.module,
            )
        except (UserError, ExternalError, OSError) as problem:
            self._handle(ProgramEnded(program, str(problem)))

    def _describe_program(self, program: str) -> dict[str, Any]:
        """Return the description with which a process runs a program."""
        description, directory = self._hosted[program].description, self._directory / program
        if not directory.exists():
            unpack(description["upload"], self._store.content(program), directory)
        arguments = resolve_paths(parse_arguments(description["arguments"], description["upload"]), directory)
        settings = {**self._settings, **arguments.settings, **description["settings"]}
        if self._session.recovers:
            settings[options.HA_CLUSTER_ID.key] = f"{settings.get(options.HA_CLUSTER_ID.key, '')}/{program}"
        return {
            "directory": str(directory),
            "file": arguments.file,
            "module": arguments.module,
            "arguments": list(arguments.arguments),
            "settings": settings,
        }

    def _on_message(self, program: str, process: ProgramProcess, message: dict[str, Any]) -> None:
        with self._lock:
            hosted = self._hosted.get(program)
            if hosted is None or hosted.process is not process:
                return
            match message["type"]:
                case "slots":
                    hosted.jobs[message["job"]] = None
                    self._handle(SlotsRequested(SlotRequest(program, message["job"], message["slots"])))
                case "job_ended":
                    self._handle(JobEnded(program, message["job"]))
                case "ended" if message["is_suspended"]:
                    self._lose(program, process, "its jobs were suspended")
                case "ended":
                    self._handle(ProgramEnded(program, message["error"], message["is_cancelled"]))

    def _lose(self, program: str, process: ProgramProcess, reason: str) -> None:
        with self._lock:
            hosted = self._hosted.get(program)
            if hosted is None or hosted.process is not process or self.is_shut_down.is_set():
                return
            hosted.process = None
            process.kill()
            _log.warning("program %s is lost: %s", program, reason)
            self._handle(ProgramLost(program, reason, self._clock.now()))

    def _archive(self, program: str) -> None:
        with self._lock:
            hosted, known = self._hosted[program], self._session.programs[program]
            process = hosted.process
        jobs = _ask_for_jobs(process)
        kept = archive.archive_jobs(
            jobs, lambda path: None if process is None else _fetch(process, path), tuple(hosted.operations)
        )
        kept |= {
            "description": hosted.description,
            "start": hosted.start,
            "end": self._clock.now(),
            "status": known.status.value,
            "restarts": known.restarts,
            "error": known.error,
        }
        with self._lock:
            hosted.archive, hosted.end, hosted.process = kept, kept["end"], None
        if process is not None:
            process.end()
        shutil.rmtree(self._directory / program, ignore_errors=True)
        self._write_archive(program, jobs, kept, is_stored=hosted.local is None)
        self._forget_oldest()

    def _write_archive(
        self, program: str, jobs: list[dict[str, Any]], kept: dict[str, Any], *, is_stored: bool
    ) -> None:
        """Write the archive of a program, and retry if that fails: a program that is still in the store would run again
        in the next cluster."""
        while True:
            try:
                if is_stored:
                    self._store.archive(program, kept)
                if self._archive_directory is not None:
                    write_history(self._archive_directory, jobs, kept)
            except ExternalError as problem:
                _log.warning("program %s could not be archived; this is tried again: %s", program, problem)
                if not self.is_shut_down.wait(_ARCHIVE_RETRY_SECONDS):
                    continue
            return

    def _forget_oldest(self) -> None:
        with self._lock:
            ended = [program for program, hosted in self._hosted.items() if hosted.archive is not None]
            ended.sort(key=lambda program: self._hosted[program].end)
            oldest = ended[: max(0, len(ended) - _KEPT_ENDED)]
            for program in oldest:
                del self._hosted[program]
                if program in self._session.programs:
                    self._handle(Forgotten(program))
        for program in oldest:
            self._store.forget(program)
            (self.logs / f"{program}.log").unlink(missing_ok=True)

    def _require(self, program: str) -> _Hosted:
        with self._lock:
            if program not in self._hosted:
                raise NoSuchProgram(program)
            return self._hosted[program]


def _cancel(process: ProgramProcess, clock: Clock) -> None:
    """Cancel the jobs of a program, including those that it starts meanwhile, until it ends. The process is killed if
    it keeps running without jobs, does not respond, or runs for too long."""
    began = last_busy = clock.now()
    while clock.now() - last_busy < _IDLE_CANCEL_MS and clock.now() - began < _MAX_CANCEL_MS:
        jobs = [job for job in _ask_for_jobs(process) if job["state"] not in _ENDED]
        for job in jobs:
            if job["state"] in _CANCELLABLE:
                _fetch(process, f"/jobs/{job['jid']}?mode=cancel", "PATCH")
        if jobs:
            last_busy = clock.now()
        if process.wait(_CANCEL_CHECK_SECONDS):
            return
    _log.warning("process %d of a cancelled program has not ended and is killed", process.pid)
    process.kill()


def _ask_for_jobs(process: ProgramProcess | None) -> list[dict[str, Any]]:
    answer = None if process is None else _fetch(process, "/jobs/overview")
    return [] if answer is None else list(answer["jobs"])


def _ask(process: ProgramProcess, method: str, path: str, body: bytes) -> ForwardedAnswer:
    headers = {"Authorization": f"Bearer {process.token}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{process.address}{path}", body or None, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=_ANSWER_SECONDS) as answer:
            return ForwardedAnswer(answer.status, answer.headers.get_content_type(), answer.read())
    except urllib.error.HTTPError as refused:
        with refused:
            return ForwardedAnswer(refused.code, refused.headers.get_content_type(), refused.read())
    except HTTPException as problem:  # it ended while it responded
        msg = f"its answer is not complete: {problem!r}"
        raise ConnectionError(msg) from None


def _refuse(status: int, text: str) -> ForwardedAnswer:
    return ForwardedAnswer(status, "application/json", json.dumps({"errors": [text]}).encode())


def _find_operation(path: str, answer: ForwardedAnswer) -> str | None:
    """Return the path that is polled for the result of an operation that a request has started; None if it started
    none."""
    if answer.status != _ACCEPTED:
        return None
    request = json.loads(answer.body).get("request-id")
    resource = path.partition("?")[0].replace("/stop", "/savepoints")
    return None if request is None else f"{resource}/{request}"


def _fetch(process: ProgramProcess, path: str, method: str = "GET") -> Any:
    if process.address is None:
        return None
    try:
        answer = _ask(process, method, path, b"")
        return json.loads(answer.body) if answer.status < 300 else None
    except (OSError, ValueError):
        return None
