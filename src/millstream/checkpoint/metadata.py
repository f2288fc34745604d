"""A checkpoint or savepoint as a value: everything a job needs to go on from an epoch boundary.

Promises: plain JSON with a version, readable by a person; reading gives back an equal value; a newer version than this
release knows is refused, not guessed at.
Does not know: where it is stored, or how its checksum is kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from millstream.errors import ExternalError, InternalError
from millstream.job.traits import OperatorTraits
from millstream.runtime.memory import SubtaskMemory, UnreadableMemory
from millstream.state.handles import Handle, Lineage

FORMAT = 2  # 1: release 0.1, whose memory had no version
CANONICAL = "canonical"  # Parquet, for anybody to read
NATIVE = "native"  # state files as they are


class UnreadableMetadata(ExternalError):
    """A metadata file that this release cannot read."""


@dataclass(frozen=True)
class OperatorSnapshot:
    """One operator: its subtasks' state and memory, in order; `traits` if it is of a table program."""

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
        """Whether leaving this operator out would lose state."""
        return any(lineage.handles for lineage in self.lineages)


@dataclass(frozen=True)
class CheckpointMetadata:
    """One checkpoint. `sources` are enumerators' positions, `committables` what sinks staged and must still commit,
    `sinks` what their committers keep.

    `savepoint` is its form, None for a checkpoint; a savepoint's files are named relative to its own directory.
    `ended` says that the job was stopped with it: there is nothing to go on to, only output to commit.
    `incarnation` is drawn when a job starts from the beginning, and is part of the names of its output, so it never
    meets the output of an earlier run under the same id. It is empty in checkpoints of releases that had none."""

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
        """What a job begins with: the checkpoint before its first epoch."""
        return cls(0, 0, 0, job_id, job_name, timestamp, 0, (), incarnation=incarnation)

    def pending(self, operator: str) -> int:
        """How many committables of an operator are still to be committed."""
        return len(self.committables.get(operator, ()))

    @property
    def handles(self) -> tuple[Handle, ...]:
        """Every state file this checkpoint needs, each once."""
        found = {
            handle.name: handle for each in self.operators for lineage in each.lineages for handle in lineage.handles
        }
        return tuple(found.values())

    @property
    def full_size(self) -> int:
        """The bytes of all state files together."""
        return sum(handle.size for handle in self.handles)

    def to_bytes(self) -> bytes:
        """The metadata file."""
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
                "operators": [_operator_to_json(each) for each in self.operators],
                "sources": dict(self.sources),
                **({"sinks": dict(self.sinks)} if self.sinks else {}),
                "committables": {sink: list(staged) for sink, staged in self.committables.items()},
            },
            indent=1,
        ).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> CheckpointMetadata:
        """The inverse of `to_bytes`."""
        try:
            read = json.loads(data)
            if _whole(read["format"]) > FORMAT:
                msg = f"the checkpoint has format {read['format']}, this release reads up to {FORMAT}"
                raise UnreadableMetadata(
                    msg,
                    hint="use the release that wrote it, or a later one",
                )
            return cls(
                checkpoint=_whole(read["checkpoint"]),
                epoch=_whole(read["epoch"]),
                generation=_whole(read["generation"]),
                job_id=read["job_id"],
                job_name=read["job_name"],
                timestamp=_whole(read["timestamp"]),
                now=_whole(read["processing_time"]),
                bytes_new=_whole(read["bytes_new"]),
                operators=tuple(_operator_from_json(each) for each in read["operators"]),
                sources=dict(read["sources"]),
                committables={sink: tuple(staged) for sink, staged in read["committables"].items()},
                savepoint=None if read.get("savepoint") is None else _form(read["savepoint"]),
                ended=read.get("ended") is True,
                incarnation=_incarnation(read.get("incarnation", "")),
                sinks=dict(read.get("sinks", {})),
            )
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as problem:
            msg = f"the checkpoint metadata is not what this release writes: {problem!r}"
            raise UnreadableMetadata(msg) from problem


def _form(value: Any) -> str:
    if value not in (CANONICAL, NATIVE):
        message = f"{value!r} is no form of a savepoint"
        raise ValueError(message)
    return str(value)


def _incarnation(value: Any) -> str:
    if not isinstance(value, str) or not (value == "" or value.isalnum()):
        message = f"{value!r} is no incarnation of a job"
        raise ValueError(message)
    return value


def _whole(value: Any) -> int:
    if type(value) is not int:
        message = f"{value!r} is not a whole number"
        raise TypeError(message)
    return value


def _operator_to_json(each: OperatorSnapshot) -> dict[str, Any]:
    if any(lineage.restored for lineage in each.lineages):
        problem = f"the state of '{each.name}' was restored but not yet written at its new parallelism"
        raise InternalError(problem)
    return {
        "operator": each.operator,
        "name": each.name,
        "uid": each.uid,
        "parallelism": each.parallelism,
        "max_parallelism": each.max_parallelism,
        **({} if each.traits is None else {"traits": each.traits.to_json()}),
        "subtasks": [
            {
                "files": [handle.to_json() for handle in lineage.own],
                "memory": memory.to_json(),
            }
            for lineage, memory in zip(each.lineages, each.memory, strict=True)
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
    def chain(handles: list[Any]) -> tuple[Handle, ...]:
        return tuple(Handle.from_json(handle) for handle in handles)

    return OperatorSnapshot(
        operator=data["operator"],
        name=data["name"],
        uid=data["uid"],
        parallelism=_whole(data["parallelism"]),
        max_parallelism=_whole(data["max_parallelism"]),
        lineages=tuple(Lineage(chain(part["files"])) for part in data["subtasks"]),
        memory=tuple(_read_memory(part["memory"]) for part in data["subtasks"]),
        traits=OperatorTraits.from_json(data["traits"]) if "traits" in data else None,
    )
