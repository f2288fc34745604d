"""REST resources of processes for Flink's dashboard: logs, standard output, threads, environment, profiler.

Promises: Flink's paths and fields. Instead of a text that this process does not keep, the response is a sentence that
says where the text is.
Does not know: the log files of programs, see `logs`."""

from __future__ import annotations

import platform
import sys
import threading
import traceback
from typing import Any

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse
from typing_extensions import TypedDict

from millstream.cluster.rest.context import RestContext
from millstream.cluster.rest.paths import JobPath
from millstream.cluster.rest.taskmanagers import SPARK
from millstream.config.secrets import mask_secrets

_LOG = "This process writes its log where its program sends it: to standard error, if the program does not say.\n"
_EXECUTOR_LOG = "Tasks run in executors of Spark, whose web UI has their logs and their standard output.\n"


class ThreadInfo(TypedDict):
    """A thread and what it does."""

    threadName: str
    stringifiedThreadInfo: str


class ThreadDump(TypedDict):
    """Threads of a process."""

    threadInfos: list[ThreadInfo]


class Environment(TypedDict):
    """The interpreter of a process, in the fields that Flink has for its virtual machine."""

    jvm: dict[str, Any]
    classpath: list[str]


def create_router(context: RestContext) -> APIRouter:
    """Return the routes of processes."""
    router = APIRouter(tags=["processes"])

    @router.get("/jobmanager/log", response_class=PlainTextResponse)
    @router.get("/jobmanager/stdout", response_class=PlainTextResponse)
    def get_text() -> str:
        """Return where the log and the output of the driver are."""
        return _LOG

    @router.get("/jobmanager/thread-dump")
    def dump_threads() -> ThreadDump:
        """Return the stacks of the threads of the driver."""
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        stacks = sys._current_frames().items()
        return {"threadInfos": [_describe_thread(names.get(ident, str(ident)), frame) for ident, frame in stacks]}

    @router.get("/jobmanager/config")
    def list_options() -> list[dict[str, str]]:
        """Return the options of the jobs of this process; secrets are hidden."""
        settings: dict[str, Any] = {}
        for job in context.dispatcher.jobs():
            settings |= mask_secrets(job.configuration.to_dict())
        return [{"key": key, "value": str(value)} for key, value in sorted(settings.items())]

    @router.get("/jobmanager/environment")
    def get_environment() -> Environment:
        """Return the interpreter of the driver; its options and paths could hold secrets, and are left out."""
        version = f"{platform.python_implementation()} {platform.python_version()}"
        return {"jvm": {"version": version, "arch": platform.machine(), "options": []}, "classpath": []}

    @router.get("/jobs/{job_id}/jobmanager/environment")
    def get_job_environment(job_id: JobPath) -> Environment:
        """Return the interpreter of the driver of a job."""
        context.dispatcher.job(job_id)
        return get_environment()

    @router.get(f"/taskmanagers/{SPARK}/log", response_class=PlainTextResponse)
    @router.get(f"/taskmanagers/{SPARK}/stdout", response_class=PlainTextResponse)
    def get_executor_text() -> str:
        """Return where the logs and the output of executors are."""
        return _EXECUTOR_LOG

    @router.get(f"/taskmanagers/{SPARK}/logs")
    def list_executor_logs() -> dict[str, list[Any]]:
        """Return no files: Spark has those of its executors."""
        return {"logs": []}

    @router.get(f"/taskmanagers/{SPARK}/thread-dump")
    def dump_executor_threads() -> ThreadDump:
        """Return no threads: Spark's web UI shows those of its executors."""
        return {"threadInfos": []}

    return router


def _describe_thread(name: str, frame: Any) -> ThreadInfo:
    stack = "".join(traceback.format_stack(frame))
    return {"threadName": name, "stringifiedThreadInfo": f'"{name}"\n{stack}'}
