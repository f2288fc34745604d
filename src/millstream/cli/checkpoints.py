"""`millstream checkpoints DIR`: what a job left behind, for a person.

Promises: nothing is changed; a damaged checkpoint is named with the damaged file, gives exit code 1, and hides no other
one; what files say is shown so that it cannot move a terminal's cursor.
Does not know: programs, or what is inside state files."""

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
from millstream.graph.explain import aligned, printable
from millstream.state.handles import Handle

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
_LONGEST_VALUE = 200


class NoCheckpoints(UserError):
    """A directory without what was asked for."""

    def __init__(self, directory: str, wanted: str = "checkpoints") -> None:
        super().__init__(
            f"there are no {wanted} in '{directory}'",
            hint="give the checkpoint directory, a job's directory in it, or one chk-N directory",
        )


@dataclass(frozen=True)
class Snapshot:
    """One checkpoint directory: its metadata, or what is wrong with it."""

    directory: Path
    metadata: CheckpointMetadata | None = None
    damage: tuple[str, ...] = ()

    @property
    def storage(self) -> CheckpointStorage:
        """Where its files are: names in metadata begin with the job's directory, or are in the savepoint's own."""
        if self.metadata is not None and self.metadata.savepoint is not None:
            return CheckpointStorage(str(self.directory))
        job = self.directory.parent
        return CheckpointStorage(str(job.parent), job.name)


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("checkpoints", help="list, show and verify checkpoints")
    parser.add_argument("directory", metavar="DIR", help="a checkpoint directory, a job's directory, or one chk-N")
    parser.add_argument("--show", metavar="N", help="show this checkpoint: its operators, files and positions")
    parser.add_argument("--verify", action="store_true", help="read every file and compare its checksum")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """List or show the checkpoints below a directory."""
    directory = Path(args.directory.removeprefix("file://")).absolute()
    snapshots = [found for each in find(directory) if (found := read(each)) is not None]
    if not snapshots:
        raise NoCheckpoints(args.directory)
    if args.show is not None:
        name = f"chk-{args.show}" if args.show.isdecimal() else args.show
        snapshots = [each for each in snapshots if each.directory.name == name]
        if not snapshots:
            raise NoCheckpoints(args.directory, f"checkpoints called {name}")
    if args.verify:
        verified = Verified()
        snapshots = [verified.check(each) for each in snapshots]
    whole = args.show is not None or snapshots[0].directory == directory
    if args.json:
        print(json.dumps([_as_json(each, whole) for each in snapshots], indent=2))
    else:
        sys.stdout.writelines(f"{line}\n" for line in (_shown(snapshots) if whole else _listed(snapshots)))
        if args.verify and not any(each.damage for each in snapshots):
            print(f"verified: {verified.files} state files, {_size(verified.bytes)}, all as they were written")
    damage = [line for each in snapshots for line in each.damage]
    for line in damage:
        print(f"damaged: {printable(line)}", file=sys.stderr)
    return 1 if damage else 0


# ------------------------------------------------------------------------------------------------- find, read, verify


def find(directory: Path) -> list[Path]:
    """The checkpoint and savepoint directories at, in, or one job below a directory, oldest first within a job."""
    if (directory / METADATA).is_file():
        return [directory]
    return [
        path.parent for pattern in ("*", "*/*") for path in sorted(directory.glob(f"{pattern}/{METADATA}"), key=_age)
    ]


def _age(metadata: Path) -> tuple[str, int, str]:
    name = metadata.parent.name
    number = name.removeprefix("chk-")
    return str(metadata.parent.parent), int(number) if number.isdecimal() else -1, name


def read(directory: Path) -> Snapshot | None:
    """The checkpoint in a directory; damage is part of the answer. None if it was given up before it was complete."""
    snapshot = Snapshot(directory)
    try:
        data = snapshot.storage.read_metadata(directory.name)
        return Snapshot(directory, CheckpointMetadata.from_bytes(data))
    except VoidCheckpoint:
        return None
    except MillstreamError as problem:
        named = problem.message if str(directory) in problem.message else f"{directory / METADATA}: {problem.message}"
        return Snapshot(directory, damage=(named,))


class Verified:
    """Reads state files, each once, however many checkpoints share it."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, int, str], str | None] = {}
        self.bytes = 0

    @property
    def files(self) -> int:
        """How many files were read."""
        return len(self._known)

    def check(self, snapshot: Snapshot) -> Snapshot:
        """The checkpoint, with the damage to the files it names."""
        if snapshot.metadata is None:
            return snapshot
        storage, damage = snapshot.storage, []
        files = StateReader(storage)
        for handle in snapshot.metadata.handles:
            identity = (storage.root, handle.name, handle.size, handle.sha256)
            if identity not in self._known:
                self._known[identity] = _problem(files, handle)
                self.bytes += handle.size
            problem = self._known[identity]
            if problem is not None:
                damage.append(f"{snapshot.directory.name}: {problem}")
        return Snapshot(snapshot.directory, snapshot.metadata, tuple(damage))


def _problem(files: StateReader, handle: Handle) -> str | None:
    try:
        files.read(handle)
    except MillstreamError as problem:
        return problem.message
    return None


# ------------------------------------------------------------------------------------------------------------- show


def _listed(snapshots: Sequence[Snapshot]) -> Iterable[str]:
    rows = [("CHECKPOINT", "JOB", "TAKEN", "EPOCH", "OPERATORS", "STATE", "NEW", "")]
    for each in snapshots:
        found, place = each.metadata, f"{each.directory.parent.name}/{each.directory.name}"
        damage = "damaged" if each.damage else ""
        if found is None:
            rows.append((printable(place), "", "", "", "", "", "", damage))
            continue
        sizes = (_size(found.full_size), _size(found.bytes_new))
        numbers = (str(found.epoch), str(len(found.operators)))
        rows.append((printable(place), printable(found.job_name), _time(found.timestamp), *numbers, *sizes, damage))
    return aligned(rows)


def _shown(snapshots: Sequence[Snapshot]) -> Iterable[str]:
    for each in snapshots:
        found = each.metadata
        if found is None:
            continue
        names = {operator.operator: printable(operator.name) for operator in found.operators}
        what = f"checkpoint {found.checkpoint}" if found.savepoint is None else f"savepoint ({found.savepoint} form)"
        yield f"{what} of job '{printable(found.job_name)}' ({printable(found.job_id)})"
        yield from _indented(
            [
                ("in", printable(str(each.directory))),
                ("taken", f"{_time(found.timestamp)}, after epoch {found.epoch}"),
                (
                    "state",
                    f"{_size(found.full_size)} in {len(found.handles)} files, {_size(found.bytes_new)} of it new",
                ),
            ]
        )
        yield "operators"
        for operator in found.operators:
            yield from _operator(operator)
        if found.sources:
            yield "source positions"
            yield from _indented([(names.get(key, key), _value(at)) for key, at in found.sources.items()])
        if found.committables:
            yield "staged output, to be committed"
            rows = [(names.get(key, key), _value(one)) for key, staged in found.committables.items() for one in staged]
            yield from _indented(rows)


def _operator(operator: OperatorSnapshot) -> Iterable[str]:
    files = [(subtask, handle) for subtask, lineage in enumerate(operator.lineages) for handle in lineage.handles]
    state = f"{_size(sum(handle.size for _, handle in files))} in {len(files)} files" if files else "no state"
    uid = "" if operator.uid is None else f", uid {printable(operator.uid)}"
    yield f"  {printable(operator.name)}{uid}, id {printable(operator.operator)}"
    yield f"    parallelism {operator.parallelism} (at most {operator.max_parallelism}), {state}"
    rows = [
        (
            f"subtask {subtask}",
            "base" if handle.base else "changes",
            f"epoch {handle.epoch}",
            f"{handle.rows} rows",
            _size(handle.size),
            printable(handle.file),
        )
        for subtask, handle in files
    ]
    yield from (f"    {line}" for line in aligned(rows))


def _as_json(snapshot: Snapshot, whole: bool) -> dict[str, Any]:
    found = snapshot.metadata
    answer: dict[str, Any] = {"path": str(snapshot.directory), "damage": list(snapshot.damage)}
    if found is None:
        return answer
    if whole:
        return {**answer, **json.loads(found.to_bytes())}
    return {
        **answer,
        "checkpoint": found.checkpoint,
        "job_id": found.job_id,
        "job_name": found.job_name,
        "epoch": found.epoch,
        "timestamp": found.timestamp,
        "operators": len(found.operators),
        "bytes": found.full_size,
        "bytes_new": found.bytes_new,
    }


def _indented(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    return (f"  {line}" for line in aligned(rows))


def _value(value: Any) -> str:
    shown = printable(value if isinstance(value, str) else json.dumps(value))
    return shown if len(shown) <= _LONGEST_VALUE else f"{shown[:_LONGEST_VALUE]}... ({len(shown)} characters)"


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds // 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _size(count: int) -> str:
    size, unit = float(count), 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.1f} {_UNITS[unit]}" if unit else f"{count} bytes"
