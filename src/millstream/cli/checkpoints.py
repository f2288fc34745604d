"""`millstream checkpoints DIR`: lists, shows and verifies checkpoints.

Promises: nothing is changed; a damaged checkpoint is reported with the damaged file and exit code 1, and other
checkpoints are still shown; control characters in names are escaped, so that they cannot move the cursor of a terminal.
Does not know: programs, or the content of state files."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.checkpoint.metadata import CheckpointMetadata, OperatorSnapshot
from millstream.checkpoint.state_files import StateReader
from millstream.checkpoint.storage import METADATA, CheckpointStorage
from millstream.checkpoint.storage_errors import VoidCheckpoint
from millstream.errors import MillstreamError, UserError
from millstream.graph.explain import align_columns, printable
from millstream.state.handles import Handle

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
_LONGEST_VALUE = 200


class NoCheckpoints(UserError):
    """A directory has no such checkpoints."""

    def __init__(self, directory: str, wanted: str = "checkpoints") -> None:
        super().__init__(
            f"there are no {wanted} in '{directory}'",
            hint="name the checkpoint directory, the directory of a job in it, or one chk-N directory",
        )


@dataclass(frozen=True)
class Snapshot:
    """One checkpoint directory: its metadata, or the damage that was found."""

    directory: Path
    metadata: CheckpointMetadata | None = None
    damage: tuple[str, ...] = ()

    @property
    def storage(self) -> CheckpointStorage:
        """The storage of its files: of the job for a checkpoint, of its own directory for a savepoint."""
        if self.metadata is not None and self.metadata.savepoint is not None:
            return CheckpointStorage(str(self.directory))
        job = self.directory.parent
        return CheckpointStorage(str(job.parent), job.name)


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("checkpoints", help="list, show and verify checkpoints")
    parser.add_argument("directory", metavar="DIR", help="a checkpoint directory, the directory of a job, or one chk-N")
    parser.add_argument("--show", metavar="N", help="show this checkpoint: its operators, files and source positions")
    parser.add_argument("--verify", action="store_true", help="read all files and check their checksums")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """List or show the checkpoints below a directory."""
    directory = Path(args.directory.removeprefix("file://")).absolute()
    snapshots = [snapshot for path in find(directory) if (snapshot := read(path)) is not None]
    if not snapshots:
        raise NoCheckpoints(args.directory)
    if args.show is not None:
        name = f"chk-{args.show}" if args.show.isdecimal() else args.show
        snapshots = [snapshot for snapshot in snapshots if snapshot.directory.name == name]
        if not snapshots:
            raise NoCheckpoints(args.directory, f"checkpoints called {name}")
    if args.verify:
        verifier = Verifier()
        snapshots = [verifier.check(snapshot) for snapshot in snapshots]
    is_detailed = args.show is not None or snapshots[0].directory == directory
    if args.json:
        print(json.dumps([_to_json(snapshot, is_detailed) for snapshot in snapshots], indent=2))
    else:
        lines = _format_details(snapshots) if is_detailed else _format_list(snapshots)
        sys.stdout.writelines(f"{line}\n" for line in lines)
        if args.verify and not any(snapshot.damage for snapshot in snapshots):
            print(f"verified: {verifier.files} state files, {_format_size(verifier.bytes)}, no damage")
    damage = [line for snapshot in snapshots for line in snapshot.damage]
    for line in damage:
        print(f"damaged: {printable(line)}", file=sys.stderr)
    return 1 if damage else 0


# ------------------------------------------------------------------------------------------------- find, read, verify


def find(directory: Path) -> list[Path]:
    """Find the checkpoints and savepoints in a directory or the job directories below it, oldest first for each job."""
    if (directory / METADATA).is_file():
        return [directory]
    return [
        path.parent
        for pattern in ("*", "*/*")
        for path in sorted(directory.glob(f"{pattern}/{METADATA}"), key=_sort_key)
    ]


def _sort_key(metadata: Path) -> tuple[str, int, str]:
    name = metadata.parent.name
    number = name.removeprefix("chk-")
    return str(metadata.parent.parent), int(number) if number.isdecimal() else -1, name


def read(directory: Path) -> Snapshot | None:
    """Read the checkpoint in a directory, or its damage; returns None if its number is void."""
    snapshot = Snapshot(directory)
    try:
        data = snapshot.storage.read_metadata(directory.name)
        return Snapshot(directory, CheckpointMetadata.from_bytes(data))
    except VoidCheckpoint:
        return None
    except MillstreamError as problem:
        has_path = str(directory) in problem.message
        damage = problem.message if has_path else f"{directory / METADATA}: {problem.message}"
        return Snapshot(directory, damage=(damage,))


class Verifier:
    """Checks state files; a file that several checkpoints share is read once."""

    def __init__(self) -> None:
        self._problems: dict[tuple[str, str, int, str], str | None] = {}
        self.bytes = 0

    @property
    def files(self) -> int:
        """The number of files that were read."""
        return len(self._problems)

    def check(self, snapshot: Snapshot) -> Snapshot:
        """Return the checkpoint with the damage of its state files."""
        if snapshot.metadata is None:
            return snapshot
        storage, damage = snapshot.storage, []
        files = StateReader(storage)
        for handle in snapshot.metadata.handles:
            identity = (storage.root, handle.name, handle.size, handle.sha256)
            if identity not in self._problems:
                self._problems[identity] = _find_problem(files, handle)
                self.bytes += handle.size
            problem = self._problems[identity]
            if problem is not None:
                damage.append(f"{snapshot.directory.name}: {problem}")
        return Snapshot(snapshot.directory, snapshot.metadata, tuple(damage))


def _find_problem(files: StateReader, handle: Handle) -> str | None:
    try:
        files.read(handle)
    except MillstreamError as problem:
        return problem.message
    return None


# ------------------------------------------------------------------------------------------------------------- show


def _format_list(snapshots: Sequence[Snapshot]) -> Iterable[str]:
    rows = [("CHECKPOINT", "JOB", "TAKEN", "EPOCH", "OPERATORS", "STATE", "NEW", "")]
    for snapshot in snapshots:
        metadata, path = snapshot.metadata, f"{snapshot.directory.parent.name}/{snapshot.directory.name}"
        damage = "damaged" if snapshot.damage else ""
        if metadata is None:
            rows.append((printable(path), "", "", "", "", "", "", damage))
            continue
        job, time = printable(metadata.job_name), _format_time(metadata.timestamp)
        numbers = (str(metadata.epoch), str(len(metadata.operators)))
        sizes = (_format_size(metadata.full_size), _format_size(metadata.bytes_new))
        rows.append((printable(path), job, time, *numbers, *sizes, damage))
    return align_columns(rows)


def _format_details(snapshots: Sequence[Snapshot]) -> Iterable[str]:
    for snapshot in snapshots:
        metadata = snapshot.metadata
        if metadata is None:
            continue
        names = {operator.operator: printable(operator.name) for operator in metadata.operators}
        is_savepoint = metadata.savepoint is not None
        title = f"savepoint ({metadata.savepoint} form)" if is_savepoint else f"checkpoint {metadata.checkpoint}"
        yield f"{title} of job '{printable(metadata.job_name)}' ({printable(metadata.job_id)})"
        size, new = _format_size(metadata.full_size), _format_size(metadata.bytes_new)
        yield from _indent(
            [
                ("in", printable(str(snapshot.directory))),
                ("taken", f"{_format_time(metadata.timestamp)}, after epoch {metadata.epoch}"),
                ("state", f"{size} in {len(metadata.handles)} files, {new} of it new"),
            ]
        )
        yield "operators"
        for operator in metadata.operators:
            yield from _format_operator(operator)
        if metadata.sources:
            yield "source positions"
            yield from _indent([(names.get(key, key), _format_value(at)) for key, at in metadata.sources.items()])
        if metadata.committables:
            yield "staged output, to be committed"
            committables = ((key, value) for key, staged in metadata.committables.items() for value in staged)
            yield from _indent([(names.get(key, key), _format_value(value)) for key, value in committables])


def _format_operator(operator: OperatorSnapshot) -> Iterable[str]:
    files = [(subtask, handle) for subtask, lineage in enumerate(operator.lineages) for handle in lineage.handles]
    size = _format_size(sum(handle.size for _, handle in files))
    state = f"{size} in {len(files)} files" if files else "no state"
    uid = "" if operator.uid is None else f", uid {printable(operator.uid)}"
    yield f"  {printable(operator.name)}{uid}, id {printable(operator.operator)}"
    yield f"    parallelism {operator.parallelism} (max parallelism {operator.max_parallelism}), {state}"
    rows = [
        (
            f"subtask {subtask}",
            "base" if handle.base else "delta",
            f"epoch {handle.epoch}",
            f"{handle.rows} rows",
            _format_size(handle.size),
            printable(handle.file),
        )
        for subtask, handle in files
    ]
    yield from (f"    {line}" for line in align_columns(rows))


def _to_json(snapshot: Snapshot, is_detailed: bool) -> dict[str, Any]:
    metadata = snapshot.metadata
    data: dict[str, Any] = {"path": str(snapshot.directory), "damage": list(snapshot.damage)}
    if metadata is None:
        return data
    if is_detailed:
        return {**data, **json.loads(metadata.to_bytes())}
    return {
        **data,
        "checkpoint": metadata.checkpoint,
        "job_id": metadata.job_id,
        "job_name": metadata.job_name,
        "epoch": metadata.epoch,
        "timestamp": metadata.timestamp,
        "operators": len(metadata.operators),
        "bytes": metadata.full_size,
        "bytes_new": metadata.bytes_new,
    }


def _indent(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    return (f"  {line}" for line in align_columns(rows))


def _format_value(value: Any) -> str:
    text = printable(value if isinstance(value, str) else json.dumps(value))
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}... ({len(text)} characters)"


def _format_time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds // 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _format_size(count: int) -> str:
    size, unit = float(count), 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.1f} {_UNITS[unit]}" if unit else f"{count} bytes"
