"""The metadata of a checkpoint or savepoint: everything a job needs to continue from an epoch boundary.

Promises: the file is JSON with a format version; reading returns an equal value; a newer format version is an error.
Does not know: where it is stored, or how its checksum is stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from millstream.errors import ExternalError, InternalError
from millstream.job.traits import OperatorTraits
from millstream.runtime.memory import SubtaskMemory, UnreadableMemory
from millstream.state.handles import Handle, Lineage

FORMAT = 2  # format 1 was that of release 0.1, whose memory had no version
CANONICAL = "canonical"  # canonical: Parquet files, which other programs can read
NATIVE = "native"  # native: the state files of the job


class UnreadableMetadata(ExternalError):
    """The metadata file of a checkpoint cannot be read by this release."""


@dataclass(frozen=True)
class OperatorSnapshot:
    """State and memory of the subtasks of one operator, in order; `traits` if it belongs to a table program."""

    operator: str
    name: str
    uid: str | None
    parallelism: int
    max_parallelism: int
    lineages: tuple[Lineage, ...]
    memory: tuple[SubtaskMemory, ...]
    traits: OperatorTraits | None = None

    @property
    def has_state(self) -> bool:
        """Whether any subtask of this operator has state."""
        return any(lineage.handles for lineage in self.lineages)


@dataclass(frozen=True)
class CheckpointMetadata:
    """The metadata of one checkpoint or savepoint.

    `sources` holds the state of split enumerators, `committables` the staged output that is still to be committed,
    `sinks` the state of committers. `savepoint` is the form of a savepoint, None for a checkpoint; files of a savepoint
    are named relative to its directory. `ended` says that the job was stopped with it, so a restart only commits
    output. `incarnation` is a random id that a job gets when it starts from the beginning. Names of its output contain
    it, so that they never collide with output of an earlier run with the same job id. It is empty in checkpoints of
    releases that had none."""

    checkpoint: int
    epoch: int
    generation: int
    job_id: str
    job_name: str
    timestamp: int
    now: int
    operators: tuple[OperatorSnapshot, ...]
    sources: Mapping[str, Any] = field(default_factory=dict)
    committables: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    bytes_new: int = 0
    savepoint: str | None = None
    ended: bool = False
    incarnation: str = ""
    sinks: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def empty(cls, job_id: str, job_name: str, timestamp: int, incarnation: str) -> CheckpointMetadata:
        """Return the metadata of a job before its first epoch."""
        return cls(0, 0, 0, job_id, job_name, timestamp, 0, (), incarnation=incarnation)

    def pending(self, operator: str) -> int:
        """Return the number of committables of an operator that are still to be committed."""
        return len(self.committables.get(operator, ()))

    @property
    def handles(self) -> tuple[Handle, ...]:
        """All state files of this checkpoint, each once."""
        lineages = (lineage for operator in self.operators for lineage in operator.lineages)
        by_name = {handle.name: handle for lineage in lineages for handle in lineage.handles}
        return tuple(by_name.values())

    @property
    def full_size(self) -> int:
        """The total size of all state files in bytes."""
        return sum(handle.size for handle in self.handles)

    def to_bytes(self) -> bytes:
        """Return the content of the metadata file."""
        return json.dumps(
            {
                "format": FORMAT,
                "checkpoint": self.checkpoint,
                "epoch": self.epoch,
                "generation": self.generation,
                "job_id": self.job_id,
                "job_name": self.job_name,
                "timestamp": self.timestamp,
                "processing_time": self.now,
                "bytes_new": self.bytes_new,
                **({} if self.savepoint is None else {"savepoint": self.savepoint}),
                **({"ended": True} if self.ended else {}),
                **({"incarnation": self.incarnation} if self.incarnation else {}),
                "operators": [_operator_to_json(operator) for operator in self.operators],
                "sources": dict(self.sources),
                **({"sinks": dict(self.sinks)} if self.sinks else {}),
                "committables": {sink: list(staged) for sink, staged in self.committables.items()},
            }
        ).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> CheckpointMetadata:
        """Return the inverse of `to_bytes`."""
        try:
            read = json.loads(data)
            if _check_integer(read["format"]) > FORMAT:
                msg = f"the checkpoint has format {read['format']}, this release reads up to {FORMAT}"
                raise UnreadableMetadata(
                    msg,
                    hint="use the release of millstream that wrote it, or a later one",
                )
            return cls(
                checkpoint=_check_integer(read["checkpoint"]),
                epoch=_check_integer(read["epoch"]),
                generation=_check_integer(read["generation"]),
                job_id=read["job_id"],
                job_name=read["job_name"],
                timestamp=_check_integer(read["timestamp"]),
                now=_check_integer(read["processing_time"]),
                bytes_new=_check_integer(read["bytes_new"]),
                operators=tuple(_operator_from_json(operator) for operator in read["operators"]),
                sources=dict(read["sources"]),
                committables={sink: tuple(staged) for sink, staged in read["committables"].items()},
                savepoint=None if read.get("savepoint") is None else _check_form(read["savepoint"]),
                ended=read.get("ended") is True,
                incarnation=_check_incarnation(read.get("incarnation", "")),
                sinks=dict(read.get("sinks", {})),
            )
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as problem:
            msg = f"the checkpoint metadata is damaged or not written by millstream: {problem!r}"
            raise UnreadableMetadata(msg) from problem


def _check_form(value: Any) -> str:
    if value not in (CANONICAL, NATIVE):
        message = f"{value!r} is not a form of a savepoint; expected {CANONICAL} or {NATIVE}"
        raise ValueError(message)
    return str(value)


def _check_incarnation(value: Any) -> str:
    if not isinstance(value, str) or not (value == "" or value.isalnum()):
        message = f"{value!r} is not the incarnation of a job"
        raise ValueError(message)
    return value


def _check_integer(value: Any) -> int:
    if type(value) is not int:
        message = f"{value!r} is not an integer"
        raise TypeError(message)
    return value


def _operator_to_json(snapshot: OperatorSnapshot) -> dict[str, Any]:
    if any(lineage.restored for lineage in snapshot.lineages):
        problem = f"the state of '{snapshot.name}' was restored but not yet written at its new parallelism"
        raise InternalError(problem)
    return {
        "operator": snapshot.operator,
        "name": snapshot.name,
        "uid": snapshot.uid,
        "parallelism": snapshot.parallelism,
        "max_parallelism": snapshot.max_parallelism,
        **({} if snapshot.traits is None else {"traits": snapshot.traits.to_json()}),
        "subtasks": [
            {
                "files": [handle.to_json() for handle in lineage.own],
                "memory": memory.to_json(),
            }
            for lineage, memory in zip(snapshot.lineages, snapshot.memory, strict=True)
        ],
    }


def _read_memory(data: Any) -> SubtaskMemory:
    try:
        memory = SubtaskMemory.from_json(data)
        memory.check()
    except UnreadableMemory as problem:
        raise UnreadableMetadata(problem.message, hint=problem.hint) from problem
    return memory


def _operator_from_json(data: Mapping[str, Any]) -> OperatorSnapshot:
    def parse_handles(handles: list[Any]) -> tuple[Handle, ...]:
        return tuple(Handle.from_json(handle) for handle in handles)

    return OperatorSnapshot(
        operator=data["operator"],
        name=data["name"],
        uid=data["uid"],
        parallelism=_check_integer(data["parallelism"]),
        max_parallelism=_check_integer(data["max_parallelism"]),
        lineages=tuple(Lineage(parse_handles(subtask["files"])) for subtask in data["subtasks"]),
        memory=tuple(_read_memory(subtask["memory"]) for subtask in data["subtasks"]),
        traits=OperatorTraits.from_json(data["traits"]) if "traits" in data else None,
    )
