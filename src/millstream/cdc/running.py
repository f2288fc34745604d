"""Runs a pipeline: starts its program, and another one when columns of the source have changed.

Promises: the next program continues where the previous one has stopped, after all of its output was committed; so no
change is lost or repeated when columns change.
Does not know: what a program does.

A source whose tables change halts before the first row that may have new columns. The job is then stopped with a
savepoint, the sink gets the new columns, and a job for these columns starts from the savepoint."""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace

from millstream import options
from millstream.cdc.definition import Pipeline
from millstream.cdc.errors import InvalidPipeline
from millstream.cdc.program import create_program
from millstream.cdc.sinks import open_sink
from millstream.cdc.sources import Capture, open_capture
from millstream.client import local
from millstream.client.job_client import JobClient
from millstream.connectors.jdbc.driver import DatabaseFailure

_POLL_SECONDS = 1.0

_log = logging.getLogger("millstream.cdc")


class TablesChanged(InvalidPipeline):
    """Columns of a source table have changed, and the pipeline is configured not to change the sink."""


def run_pipeline(
    pipeline: Pipeline,
    configuration: Mapping[str, str] | None = None,
    *,
    on_started: Callable[[JobClient, tuple[str, ...]], None] | None = None,
) -> None:
    """Run a pipeline until it ends: when its source is bounded, or its job is cancelled.

    Args:
        pipeline: The definition.
        configuration: Options of the jobs, such as `execution.checkpointing.dir`.
        on_started: Called with each job that is started, and descriptions of the tables that it writes.

    """
    settings = {
        options.CHECKPOINT_INTERVAL.key: "3 s",
        **local.defaults(),
        options.PIPELINE_NAME.key: pipeline.name,
        **({} if pipeline.parallelism is None else {options.PARALLELISM.key: str(pipeline.parallelism)}),
        **(configuration or {}),
    }
    temporary = None
    directory = settings.get(options.SAVEPOINT_DIR.key) or settings.get(options.CHECKPOINT_DIR.key)
    if directory is None:
        directory = temporary = tempfile.mkdtemp(prefix="millstream-cdc-")
    sink = open_sink(pipeline.sink)
    capture, earlier = open_capture(pipeline.source), None
    try:
        while True:
            program = create_program(pipeline, capture, sink, settings, earlier)
            job = program.statements.execute().get_job_client()
            assert job is not None
            if on_started is not None:
                on_started(job, program.inserts)
            if not _wait_for_change(job, capture, pipeline):
                return
            savepoint = job.stop_with_savepoint(False, directory).result()
            if pipeline.behavior == "exception":
                temporary = None  # the savepoint is kept, because the error names it
                message = "columns of a source table have changed"
                raise TablesChanged(message, hint=f"the job was stopped with the savepoint {savepoint}")
            _log.info("columns of a source table have changed; continuing from %s", savepoint)
            settings = {
                **settings,
                options.RECOVERY_PATH.key: savepoint,
                options.RECOVERY_IGNORE_UNCLAIMED.key: "true",
            }
            earlier, capture = capture, _with_dropped_columns(open_capture(pipeline.source), capture)
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def _wait_for_change(job: JobClient, capture: Capture, pipeline: Pipeline) -> bool:
    """Wait until the job has ended, then return False or raise its error; or until a table has changed."""
    try:
        while not job.wait(_POLL_SECONDS):
            if pipeline.behavior != "ignore" and _have_changed(capture):
                return True
    except BaseException:
        job.cancel().result()
        raise
    job.get_job_execution_result().result()
    return False


def _have_changed(capture: Capture) -> bool:
    try:
        return capture.source.tables_have_changed()
    except DatabaseFailure as problem:  # the job itself waits for the database, too
        _log.warning("the columns of the source tables cannot be read: %s", problem)
        return False


def _with_dropped_columns(capture: Capture, earlier: Capture) -> Capture:
    """Return the capture with dropped columns of its tables: the sink has these columns, and they are null from now
    on."""
    before = {table.id: table for table in earlier.tables}
    tables = []
    for table in capture.tables:
        columns = dict(before[table.id].columns) if table.id in before else {}
        columns = {name: table.columns.get(name, data_type.nullable()) for name, data_type in columns.items()}
        tables.append(replace(table, columns={**columns, **table.columns}))
    return replace(capture, tables=tuple(tables))
