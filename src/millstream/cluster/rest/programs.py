"""REST resources that run programs: Flink's uploads of jars, for Python files and zip archives.

Promises: an upload is bounded and kept in memory until it is deleted; what is run is a Python program, named as for
Flink's PythonDriver. A job graph of Flink's own client and the Java classes of a jar are refused with a sentence, after
the whole request is read, because Flink's clients repeat a request whose connection breaks.
Does not know: how programs run."""

from __future__ import annotations

import re
import shlex
import time
from email.message import Message
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request, status
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from typing_extensions import TypedDict

from millstream import options
from millstream.cluster.rest.applications import require_session
from millstream.cluster.rest.context import RestContext
from millstream.cluster.rest.errors import NotFound, UnsupportedOperation
from millstream.cluster.rest.session_view import SessionView, Submission, Upload
from millstream.cluster.session.arguments import PYTHON_DRIVER
from millstream.errors import ExternalError, UserError

_FIRST_JOB_SECONDS, _POLL_SECONDS = 90.0, 0.05
#: Paths whose bodies are read, or read and dropped, with their own size limit.
UPLOADING = frozenset({"/jars/upload", "/v1/jars/upload", "/jobs", "/v1/jobs"})
_FILE_NAME = re.compile(rb'filename="((?:[^"\\]|\\.)*)"', re.IGNORECASE)


class UploadedFile(TypedDict):
    """An uploaded program."""

    id: str
    name: str
    uploaded: int
    entry: list[dict[str, str]]


class UploadedFiles(TypedDict):
    """The uploaded programs."""

    address: str
    files: list[UploadedFile]


class UploadAnswer(TypedDict):
    """Where an upload is kept; the last part of the name is its id."""

    filename: str
    status: str


class RunAnswer(TypedDict):
    """The first job of a program, and the program."""

    jobid: str
    applicationId: str


class ApplicationAnswer(TypedDict):
    """A program that was started."""

    applicationId: str


class RunRequest(BaseModel):
    """The program to run, and its arguments."""

    model_config = ConfigDict(populate_by_name=True, extra="ignore")

    entry_class: str | None = Field(None, alias="entryClass")
    arguments: list[str] | None = Field(None, alias="programArgsList")
    argument_text: str | None = Field(None, alias="programArgs")
    parallelism: int | None = Field(None, ge=1)
    allow_non_restored_state: bool | None = Field(None, alias="allowNonRestoredState")
    savepoint_path: str | None = Field(None, alias="savepointPath")
    claim_mode: str | None = Field(None, alias="claimMode")
    settings: dict[str, str] | None = Field(None, alias="flinkConfiguration")


class TooLarge(UserError):
    """An upload is larger than allowed."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the upload has more than {limit} bytes", hint="raise rest.server.max-content-length")


class NoSubmission(NotFound):
    """Programs cannot be uploaded and run, because an option disables it."""

    def __init__(self) -> None:
        super().__init__(
            f"this cluster takes no programs: {options.WEB_SUBMIT.key} is false",
            hint=f"set {options.WEB_SUBMIT.key}: true in the configuration of the cluster",
        )


class NoFirstJob(ExternalError):
    """A program has not started a job in time."""

    def __init__(self, program: str, seconds: float) -> None:
        super().__init__(
            f"program {program} runs, but has not started a job within {seconds:g} s",
            hint="watch it: GET /applications/ID, or its log",
        )


def require_submission(context: RestContext) -> SessionView:
    """Return the session cluster.

    Raises:
        NoSession: There is none.
        NoSubmission: It takes no programs.

    """
    session = require_session(context)
    if not context.configuration.get(options.WEB_SUBMIT):
        raise NoSubmission
    return session


def create_router(context: RestContext) -> APIRouter:
    """Return the routes of uploads and programs."""
    router = APIRouter(tags=["programs"])

    @router.get("/jars")
    def list_uploads() -> UploadedFiles:
        """Return the uploaded programs."""
        uploads = [] if context.session is None else context.session.uploads()
        return {"address": "", "files": [_describe(upload) for upload in uploads]}

    @router.post("/jars/upload")
    async def upload(request: Request) -> UploadAnswer:
        """Upload a Python file or a zip archive, as the file `jarfile` of a form."""
        content = await _read(request, context.session.upload_limit if context.session is not None else 0)
        session = require_submission(context)
        name, data = _parse_form(request.headers.get("content-type", ""), content)
        kept = await run_in_threadpool(session.add_upload, name, data)
        return {"filename": f"/{kept.id}", "status": "success"}

    @router.delete("/jars/{upload_id}")
    def delete_upload(upload_id: str) -> dict[str, Any]:
        """Delete an uploaded program."""
        require_session(context).delete_upload(upload_id)
        return {}

    @router.post("/jars/{upload_id}/run")
    def run_program(upload_id: str, request: Annotated[RunRequest | None, Body()] = None) -> RunAnswer:
        """Run an uploaded program, and wait until it has started its first job."""
        session = require_submission(context)
        program = session.submit(_submission(upload_id, request or RunRequest.model_validate({})))
        return {"jobid": _first_job(session, program), "applicationId": program}

    @router.post("/jars/{upload_id}/run-application", status_code=status.HTTP_202_ACCEPTED)
    def run_application(upload_id: str, request: Annotated[RunRequest | None, Body()] = None) -> ApplicationAnswer:
        """Run an uploaded program without waiting for it."""
        return {
            "applicationId": require_submission(context).submit(
                _submission(upload_id, request or RunRequest.model_validate({}))
            )
        }

    @router.get("/jars/{upload_id}/plan")
    @router.post("/jars/{upload_id}/plan")
    def get_plan(upload_id: str) -> dict[str, Any]:
        """Refuse: the plan of a Python program is known only when the program runs."""
        msg = f"the plan of '{upload_id}' is known when it runs"
        raise UnsupportedOperation(msg, hint="show it on the client: millstream info job.py")

    @router.post("/jobs", include_in_schema=False)
    async def refuse_graph(request: Request) -> dict[str, Any]:
        """Refuse the graph that Flink's own client sends."""
        await _read(request, 0)
        msg = "this cluster runs Python programs, and a job graph of Flink's Java client cannot run here"
        raise UserError(
            msg, hint="use millstream run -d job.py, or flink run -pyclientexec millstream-python -py job.py"
        )

    @router.delete("/cluster")
    def shut_down() -> dict[str, Any]:
        """End the session cluster; programs that can be recovered continue when it starts again."""
        require_session(context).shut_down()
        return {}

    return router


def _describe(upload: Upload) -> UploadedFile:
    return {
        "id": upload.id,
        "name": upload.name,
        "uploaded": upload.time,
        "entry": [{"name": PYTHON_DRIVER, "description": "a Python program"}],
    }


def _submission(upload: str, request: RunRequest) -> Submission:
    if request.entry_class not in (None, "", PYTHON_DRIVER):
        msg = f"'{request.entry_class}' is a Java class, and this cluster runs Python programs"
        raise UserError(msg, hint=f"leave entryClass out, or set it to {PYTHON_DRIVER}")
    settings = dict(request.settings or {})
    if request.parallelism is not None:
        settings[options.PARALLELISM.key] = str(request.parallelism)
    if request.savepoint_path:
        settings[options.RECOVERY_PATH.key] = request.savepoint_path
    if request.allow_non_restored_state:
        settings[options.RECOVERY_IGNORE_UNCLAIMED.key] = "true"
    if request.claim_mode:
        settings[options.RECOVERY_CLAIM_MODE.key] = request.claim_mode
    return Submission(upload, request.arguments or shlex.split(request.argument_text or ""), settings)


def _first_job(session: SessionView, program: str) -> str:
    until = time.monotonic() + _FIRST_JOB_SECONDS
    while time.monotonic() < until:
        view = session.program(program)
        if view.jobs:
            return view.jobs[0]
        if view.status.is_final:
            msg = f"the program ended without a job: {view.error or 'it did not call execute()'}"
            raise UserError(msg)
        time.sleep(_POLL_SECONDS)
    raise NoFirstJob(program, _FIRST_JOB_SECONDS)


async def _read(request: Request, limit: int) -> bytes:
    """Return the body. One that is too large is read to its end and dropped; a limit of 0 drops any body."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size <= limit:
            parts.append(part)
    if limit and size > limit:
        raise TooLarge(limit)
    return b"".join(parts)


def _parse_form(content_type: str, body: bytes) -> tuple[str, bytes]:
    """Return the name and the content of the only file of a form."""
    header = Message()
    header["Content-Type"] = content_type
    boundary = header.get_boundary()
    if header.get_content_type() != "multipart/form-data" or not boundary:
        msg = "the upload is not a form (multipart/form-data)"
        raise UserError(msg, hint="send the program as the file 'jarfile' of a form")
    for part in (b"\r\n" + body).split(b"\r\n--" + boundary.encode())[1:]:
        head, _, content = part.partition(b"\r\n\r\n")
        if (name := _FILE_NAME.search(head)) is not None:
            return name[1].decode("utf-8", "replace"), content
    msg = "the form has no file"
    raise NotFound(msg)
