"""REST resources that show the state in the checkpoints and savepoints of a job: operators, states, entries, and what
two of them have in common.

Promises: a snapshot is named, never a path, and belongs to the job; values are read with the classes that the job
declares, and sent as text. A request reads for at most a few seconds and keeps a bounded part of the state in memory;
only one request reads at a time.
Does not know: how state is stored."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from typing_extensions import TypedDict

from millstream.checkpoint import state_pages
from millstream.checkpoint.metadata import OperatorSnapshot
from millstream.checkpoint.savepoint import Snapshot
from millstream.checkpoint.state_pages import Entry, Page, Position
from millstream.cluster.dispatcher import DispatchedJob
from millstream.cluster.open_snapshots import NoSuchSnapshot
from millstream.cluster.rest.context import RestContext
from millstream.cluster.rest.errors import Busy, NotFound
from millstream.cluster.rest.paths import JobPath
from millstream.cluster.rest.snapshot_comparison import ComparedOperator, compare, state_bytes
from millstream.errors import MillstreamError, UserError
from millstream.runtime.value_text import to_text
from millstream.serialization import codec
from millstream.state.deltas import Redistribution, TableSchema, display_name
from millstream.types.factory import Types
from millstream.windows.window import TimeWindow

_READ_SECONDS, _COMPARE_SECONDS, _WAIT_SECONDS = 3.0, 8.0, 10.0
_INTEGERS = (Types.LONG(), Types.INT(), Types.SHORT(), Types.BYTE())

_NAME = "^(latest|started-from|chk-[0-9]{1,12}|savepoint-[0-9]{1,6})$"
SnapshotPath = Annotated[str, Path(pattern=_NAME)]
OperatorPath = Annotated[str, Path(pattern="^[0-9A-Za-z_-]{1,64}$")]
Cursor = Annotated[str, Query(pattern="^[0-9]{1,6}[.][0-9]{1,6}[.][0-9]{1,12}$")]


class ListedSnapshot(TypedDict):
    """A checkpoint or savepoint that can be read. `time` is milliseconds since 1970, or None if it is not known."""

    name: str
    kind: str
    path: str
    time: int | None


class SnapshotOperator(TypedDict):
    """An operator in a snapshot: the size of its state files, and how many there are."""

    id: str
    name: str
    uid: str | None
    parallelism: int
    maxParallelism: int
    bytes: int
    files: int


class SnapshotDetails(TypedDict):
    """A snapshot. `form` is canonical or native for a savepoint, None for a checkpoint."""

    name: str
    kind: str
    path: str
    checkpoint: int
    epoch: int
    time: int
    jobName: str
    form: str | None
    bytes: int
    operators: list[SnapshotOperator]


class DescribedState(TypedDict):
    """A state. `state` is its unique name in the operator, `name` that of its descriptor; `kind` is empty for state
    that is not the user's own. `entries` is None if they were not counted in time."""

    state: str
    name: str
    kind: str
    keyed: bool
    keyType: str
    valueType: str
    ttl: bool
    entries: int | None


class OperatorStates(TypedDict):
    """The states of an operator; `complete` says whether all state files were looked at."""

    states: list[DescribedState]
    complete: bool


class StateEntry(TypedDict):
    """An entry as text. `window` is that of state in windows; `updated` the last write of state with a time to live."""

    subtask: int
    window: str | None
    key: str | None
    value: str
    updated: int | None


class StatePage(TypedDict):
    """Entries of a state. `next` is the cursor of the next page, None at the end; `scanned` counts the entries that
    were looked at for this page."""

    entries: list[StateEntry]
    next: str | None
    scanned: int


class Comparison(TypedDict):
    """Two snapshots, by operator; `complete` says whether all states were compared in time."""

    before: str
    after: str
    operators: list[ComparedOperator]
    complete: bool


class NoSuchOperator(NotFound):
    """The snapshot has no such operator."""

    def __init__(self, operator: str) -> None:
        super().__init__(f"the snapshot has no operator {operator}")


class NoSuchState(NotFound):
    """The operator has no such state."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the operator has no state '{name[:100]}' in this snapshot")


class StateReadInProgress(Busy):
    """Another request is reading state."""

    def __init__(self) -> None:
        super().__init__("other requests read state")


class NotReadable(UserError):
    """State cannot be read by this process."""


def create_router(context: RestContext) -> APIRouter:
    """Return the routes of snapshots."""
    router = APIRouter(prefix="/jobs/{job_id}/millstream/snapshots", tags=["millstream"])
    dispatcher, clock = context.dispatcher, context.clock
    reading = threading.Lock()

    @contextmanager
    def read_state(job: DispatchedJob) -> Iterator[None]:
        """Read state in the `with` block, with the classes of a job only; one request at a time, so that memory is
        bounded."""
        if not reading.acquire(timeout=_WAIT_SECONDS):
            raise StateReadInProgress
        try:
            with codec.using(job.classes):
                yield
        except UserError:
            raise
        except MillstreamError as problem:
            raise NotReadable(problem.message, hint=problem.hint) from problem
        finally:
            reading.release()

    def deadline(seconds: float) -> Callable[[], bool]:
        end = clock.precise() + seconds
        return lambda: clock.precise() > end

    @router.get("")
    def list_snapshots(job_id: JobPath) -> list[ListedSnapshot]:
        """Return the checkpoints and savepoints of a job that can be read, newest first."""
        job = dispatcher.job(job_id)
        times = {checkpoint.event.path: checkpoint.time for checkpoint in job.statistics().checkpoints}
        return [
            {"name": named.name, "kind": named.kind, "path": named.path, "time": times.get(named.path)}
            for named in job.snapshots.list()
        ]

    @router.get("/{snapshot}")
    def get_snapshot(job_id: JobPath, snapshot: SnapshotPath) -> SnapshotDetails:
        """Return the operators of a snapshot, with the sizes of their state."""
        named, opened = _open(dispatcher.job(job_id), snapshot)
        metadata = opened.metadata
        return {
            "name": named,
            "kind": "checkpoint" if metadata.savepoint is None else "savepoint",
            "path": opened.path,
            "checkpoint": metadata.checkpoint,
            "epoch": metadata.epoch,
            "time": metadata.timestamp,
            "jobName": metadata.job_name,
            "form": metadata.savepoint,
            "bytes": metadata.full_size,
            "operators": [_describe_operator(operator) for operator in metadata.operators],
        }

    @router.get("/{snapshot}/operators/{operator_id}")
    def get_states(job_id: JobPath, snapshot: SnapshotPath, operator_id: OperatorPath) -> OperatorStates:
        """Return the states of an operator, with the number of their entries."""
        job = dispatcher.job(job_id)
        _, opened = _open(job, snapshot)
        operator, read, is_over = _find_operator(opened, operator_id), opened.reader().read, deadline(_READ_SECONDS)
        with read_state(job):
            schemas, complete = state_pages.list_schemas(operator, read, is_over)
            states = [_describe_state(schema, operator, read, is_over) for schema in schemas]
        return {"states": states, "complete": complete}

    @router.get("/{snapshot}/operators/{operator_id}/entries")
    def list_entries(
        job_id: JobPath,
        snapshot: SnapshotPath,
        operator_id: OperatorPath,
        state: Annotated[str, Query(max_length=1_000)],
        key: Annotated[str | None, Query(max_length=10_000)] = None,
        search: Annotated[str | None, Query(max_length=1_000)] = None,
        cursor: Cursor = "0.0.0",
        limit: Annotated[int, Query(ge=1, le=500)] = 50,
    ) -> StatePage:
        """Return entries of a state: those of one key, or those whose text contains `search`, a page at a time."""
        job = dispatcher.job(job_id)
        _, opened = _open(job, snapshot)
        operator, read, is_over = _find_operator(opened, operator_id), opened.reader().read, deadline(_READ_SECONDS)
        with read_state(job):
            schema = _find_state(operator, read, state, is_over)
            start = Position(*map(int, cursor.split(".")))
            if key is not None and (typed := _parse_key(schema, key)) is not None:
                page = state_pages.read_key(operator, read, schema, typed)
            else:
                page = state_pages.read_page(operator, read, schema, start, limit, _create_filter(key, search), is_over)
            return _describe_page(page)

    @router.get("/{snapshot}/comparison")
    def compare_snapshots(
        job_id: JobPath, snapshot: SnapshotPath, before: Annotated[str, Query(pattern=_NAME)]
    ) -> Comparison:
        """Return how the state of each operator differs from that in another snapshot, `before`."""
        job = dispatcher.job(job_id)
        (old_name, old), (new_name, new) = _open(job, before), _open(job, snapshot)
        is_over = deadline(_COMPARE_SECONDS)
        with read_state(job):
            operators, complete = compare(old, new, is_over)
        return {"before": old_name, "after": new_name, "operators": operators, "complete": complete}

    return router


def _open(job: DispatchedJob, name: str) -> tuple[str, Snapshot]:
    try:
        named, snapshot = job.snapshots.open(name)
    except NoSuchSnapshot as problem:
        raise NotFound(problem.message, hint=problem.hint) from None
    return named.name, snapshot


def _find_operator(snapshot: Snapshot, operator_id: str) -> OperatorSnapshot:
    for operator in snapshot.metadata.operators:
        if operator.operator == operator_id:
            return operator
    raise NoSuchOperator(operator_id)


def _find_state(operator: OperatorSnapshot, read: Any, state: str, is_over: Callable[[], bool]) -> TableSchema:
    for schema in state_pages.list_schemas(operator, read, is_over)[0]:
        if schema.name == state:
            return schema
    raise NoSuchState(state)


def _describe_operator(operator: OperatorSnapshot) -> SnapshotOperator:
    handles = [handle for lineage in operator.lineages for handle in lineage.handles]
    return {
        "id": operator.operator,
        "name": operator.name,
        "uid": operator.uid,
        "parallelism": operator.parallelism,
        "maxParallelism": operator.max_parallelism,
        "bytes": state_bytes(operator),
        "files": len(handles),
    }


def _describe_state(
    schema: TableSchema, operator: OperatorSnapshot, read: Any, is_over: Callable[[], bool]
) -> DescribedState:
    return {
        "state": schema.name,
        "name": display_name(schema.name),
        "kind": schema.kind,
        "keyed": schema.redistribution is Redistribution.KEYED,
        "keyType": str(schema.key_type),
        "valueType": str(schema.value_type),
        "ttl": schema.ttl,
        "entries": None if is_over() else state_pages.count_entries(operator, read, schema, is_over),
    }


def _parse_key(schema: TableSchema, text: str) -> Any:
    """Return a key of a simple type; None for other types, whose entries are searched by text."""
    if schema.redistribution is not Redistribution.KEYED:
        return None
    if schema.key_type == Types.STRING():
        return text
    if schema.key_type in _INTEGERS:
        try:
            return int(text[:30])
        except ValueError:
            msg = f"{text[:100]!r} is not a key: the keys of this state are of type {schema.key_type}"
            raise UserError(msg) from None
    return None


def _create_filter(key: str | None, search: str | None) -> Callable[[Entry], bool]:
    if key is not None:
        return lambda entry: to_text(entry.key) == key
    if not search:
        return lambda _: True
    wanted = search.casefold()
    return lambda entry: any(
        wanted in to_text(value).casefold() for value in (entry.key, entry.namespace, entry.value) if value is not None
    )


def _describe_page(page: Page) -> StatePage:
    position = page.next
    return {
        "entries": [_describe_entry(entry) for entry in page.entries],
        "next": None if position is None else f"{position.subtask}.{position.slice}.{position.row}",
        "scanned": page.scanned,
    }


def _describe_entry(entry: Entry) -> StateEntry:
    window = entry.namespace
    if isinstance(window, TimeWindow):
        window = f"{window.start} to {window.end}"
    return {
        "subtask": entry.subtask,
        "window": None if window is None else to_text(window),
        "key": None if entry.key is None else to_text(entry.key),
        "value": to_text(entry.value),
        "updated": entry.updated,
    }
