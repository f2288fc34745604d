"""Reads the entries of one state of a checkpoint or savepoint page by page, for interactive browsing.

Promises: a page needs memory for one slice of a subtask's state and one state file; a file that is larger than a limit
is refused. A page ends early at its time limit, and the next one continues there. Reading never executes code.
Does not know: how entries are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from millstream.checkpoint.metadata import OperatorSnapshot
from millstream.checkpoint.state_tables import Read, Slice, parse_schema, read_slice
from millstream.errors import UserError
from millstream.state import deltas
from millstream.state.deltas import Redistribution, TableSchema
from millstream.state.handles import Handle
from millstream.state.key_groups import KeyGrouper, subtask_of

MAX_FILE_BYTES = 256 << 20
_LISTS = (Redistribution.SPLIT, Redistribution.UNION)  # tables whose keys are indexes of elements


class StateFileTooLarge(UserError):
    """A state file is too large to be read in the driver."""

    def __init__(self, name: str, size: int) -> None:
        super().__init__(
            f"the state file {name} has {size >> 20} MiB, the limit is {MAX_FILE_BYTES >> 20} MiB",
            hint="take a canonical savepoint and read its Parquet files, or use millstream.state_processor",
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a state. `namespace` is the window of state in windows, else None; `updated` is the time of the last
    write of state with a time to live, in milliseconds since 1970."""

    subtask: int
    namespace: Any
    key: Any
    value: Any
    updated: int | None = None


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A position in the entries of a state."""

    subtask: int = 0
    slice: int = 0
    row: int = 0


@dataclass(frozen=True, slots=True)
class Page:
    """Some entries, the position of the next page (None after the last one), and the number of entries that were
    scanned."""

    entries: tuple[Entry, ...]
    next: Position | None
    scanned: int


def list_schemas(operator: OperatorSnapshot, read: Read, is_over: Callable[[], bool]) -> tuple[list[TableSchema], bool]:
    """Return the schemas of the states of an operator, and whether all state files were read in time.

    Raises:
        StateFileTooLarge: A state file is larger than the limit.

    """
    schemas: dict[str, TableSchema] = {}
    read = bounded(read)
    for number, handle in enumerate(handle for lineage in operator.lineages for handle in reversed(lineage.own)):
        if number and is_over():
            return list(schemas.values()), False
        for entry in deltas.describe(read(handle)):
            if entry["name"] not in schemas:
                schemas[str(entry["name"])] = parse_schema(entry)
    return list(schemas.values()), True


def read_page(
    operator: OperatorSnapshot,
    read: Read,
    schema: TableSchema,
    start: Position,
    limit: int,
    accept: Callable[[Entry], bool],
    is_over: Callable[[], bool],
) -> Page:
    """Read the next `limit` entries that `accept` accepts; at least one slice is read, even if the time limit has
    passed.

    Raises:
        StateFileTooLarge: A state file is larger than the limit.

    """
    entries: list[Entry] = []
    scanned = 0
    for position, state_slice in _slices(operator, schema, start):
        if position > start and is_over():
            return Page(tuple(entries), position, scanned)
        first = start.row if (position.subtask, position.slice) == (start.subtask, start.slice) else 0
        for row, entry in enumerate(_read_entries(operator, read, schema, position.subtask, state_slice)):
            if row < first:
                continue
            if len(entries) == limit:
                return Page(tuple(entries), Position(position.subtask, position.slice, row), scanned)
            scanned += 1
            if accept(entry):
                entries.append(entry)
    return Page(tuple(entries), None, scanned)


def read_key(operator: OperatorSnapshot, read: Read, schema: TableSchema, key: Any) -> Page:
    """Read the entries of one key of keyed state: a single entry, or one for each window."""
    group = KeyGrouper(operator.max_parallelism).of(key)
    subtask = subtask_of(group, operator.parallelism, operator.max_parallelism)
    for state_slice in Slice.split(operator, subtask):
        if state_slice.holds(group):
            entries = list(_read_entries(operator, read, schema, subtask, state_slice))
            return Page(tuple(entry for entry in entries if entry.key == key), None, len(entries))
    return Page((), None, 0)


def count_entries(
    operator: OperatorSnapshot, read: Read, schema: TableSchema, is_over: Callable[[], bool]
) -> int | None:
    """Return the number of entries; None if there are too many to count in time."""
    page = read_page(operator, read, schema, Position(), 1, lambda _: False, is_over)
    return page.scanned if page.next is None else None


def bounded(read: Read) -> Read:
    """Return a function that reads state files, and raises for files that are too large."""

    def read_bounded(handle: Handle) -> bytes:
        if handle.size > MAX_FILE_BYTES:
            raise StateFileTooLarge(handle.name, handle.size)
        return read(handle)

    return read_bounded


def _slices(operator: OperatorSnapshot, schema: TableSchema, start: Position) -> Iterator[tuple[Position, Slice]]:
    subtasks = 1 if schema.redistribution is Redistribution.BROADCAST else operator.parallelism
    for subtask in range(start.subtask, subtasks):
        for state_slice in Slice.split(operator, subtask):
            if subtask > start.subtask or state_slice.index >= start.slice:
                yield Position(subtask, state_slice.index), state_slice


def _read_entries(
    operator: OperatorSnapshot, read: Read, schema: TableSchema, subtask: int, state_slice: Slice
) -> Iterator[Entry]:
    tables = read_slice(operator.lineages[subtask], bounded(read), state_slice, (schema.name,))
    for table, changes in tables:
        has_keys = table.redistribution not in _LISTS
        for namespace, key, _, stored in changes.rows():
            value, updated = _split_times(table, stored) if table.ttl else (stored, None)
            yield Entry(subtask, namespace, key if has_keys else None, value, updated)


def _split_times(schema: TableSchema, stored: Any) -> tuple[Any, int | None]:
    """Return a value of state with a time to live without its timestamps, and the newest of them."""
    if schema.kind == "list":
        return [value for value, _ in stored], max((time for _, time in stored), default=None)
    if schema.kind == "map":
        return {key: value for key, (value, _) in stored.items()}, max(
            (time for _, time in stored.values()), default=None
        )
    value, time = stored
    return value, time
