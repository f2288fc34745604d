"""What a subtask sends to the driver at the end of an epoch: a report, or a failure.

Both are sent as blocks, through the exchanges of the levels after them. A report is pickled in its JSON form, together
with the values of the program: accumulators, and what sinks staged. Pickling is a third as expensive as JSON text, and
PySpark pickles its own results.

Promises: a report comes back equal; bytes of another version are refused.
Does not know: who reads reports, or how blocks are sent."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from millstream.errors import ExternalError
from millstream.job.accumulators import Accumulator
from millstream.runtime.block import (
    HEADER_SIZE,
    REPORT_EDGE,
    BlockKind,
    DamagedBlock,
    dump_pickle,
    pack_header,
)
from millstream.runtime.block_sums import SumOfBlocks
from millstream.runtime.memory import SubtaskMemory
from millstream.state.handles import Chain, Handle

VERSION = 2


class UnknownReportVersion(ExternalError):
    """A report that another release of millstream wrote."""

    hint = "install the same release of millstream on the driver and on all executors"

    def __init__(self, version: object) -> None:
        super().__init__(f"a task reports in version {version!r}, the driver reads version {VERSION}")


@dataclass(frozen=True)
class TaskReport:
    """The result of one attempt of one subtask in one epoch.

    `states` are the state files that it wrote, by operator, and `results` what its sinks staged. `timer` is the
    earliest processing time at which an operator has work without input. `busy` is in seconds. `sent` and `read` are
    the sums of the blocks by edge, see `block_sums`; `bytes_in` and `bytes_out` are the sizes of these blocks. `stacks`
    are samples for a flame graph, if they were asked for, and `samples` are some of the records that operators
    dropped. `keys` is a sample of the keys that were read: how many, and the most frequent ones, see `hot_keys`."""

    vertex: str
    subtask: int
    attempt: bytes
    states: Mapping[str, Chain] = field(default_factory=dict)
    memory: Mapping[str, SubtaskMemory] = field(default_factory=dict)
    results: Mapping[str, Any] = field(default_factory=dict)
    timer: int | None = None
    metrics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    accumulators: Mapping[str, Accumulator[Any, Any]] = field(default_factory=dict)
    printed: str = ""
    watermark: int = 0
    busy: float = 0.0
    sent: Mapping[int, SumOfBlocks] = field(default_factory=dict)
    read: Mapping[int, SumOfBlocks] = field(default_factory=dict)
    bytes_in: int = 0
    bytes_out: int = 0
    stacks: Mapping[str, Any] = field(default_factory=dict)
    samples: Mapping[str, Any] = field(default_factory=dict)
    keys: tuple[int, list[tuple[str, int]]] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain values, without `results` and `accumulators`, which are values of the program."""
        return {
            "version": VERSION,
            "vertex": self.vertex,
            "subtask": self.subtask,
            "attempt": self.attempt.hex(),
            "states": {name: [handle.to_json() for handle in chain] for name, chain in self.states.items()},
            "memory": {name: memory.to_json() for name, memory in self.memory.items()},
            "timer": self.timer,
            "metrics": self.metrics,
            "printed": self.printed,
            "watermark": self.watermark,
            "busy": self.busy,
            "sent": self.sent,
            "read": self.read,
            "bytes": [self.bytes_in, self.bytes_out],
            **({"stacks": self.stacks} if self.stacks else {}),
            **({"samples": self.samples} if self.samples else {}),
            **({"keys": self.keys} if self.keys else {}),
        }

    @classmethod
    def from_json(
        cls,
        data: Mapping[str, Any],
        results: Mapping[str, Any],
        accumulators: Mapping[str, Accumulator[Any, Any]],
    ) -> TaskReport:
        """Return the inverse of `to_json`, with the values of the program."""
        if data["version"] != VERSION:
            raise UnknownReportVersion(data["version"])
        return cls(
            vertex=data["vertex"],
            subtask=data["subtask"],
            attempt=bytes.fromhex(data["attempt"]),
            states={name: tuple(map(Handle.from_json, chain)) for name, chain in data["states"].items()},
            memory={name: SubtaskMemory.from_json(memory) for name, memory in data["memory"].items()},
            results=results,
            timer=data["timer"],
            metrics=data["metrics"],
            accumulators=accumulators,
            printed=data["printed"],
            watermark=data["watermark"],
            busy=data["busy"],
            sent=data["sent"],
            read=data["read"],
            bytes_in=data["bytes"][0],
            bytes_out=data["bytes"][1],
            stacks=data.get("stacks", {}),
            samples=data.get("samples", {}),
            keys=data.get("keys"),
        )


@dataclass(frozen=True)
class TaskFailure:
    """Why an attempt of a subtask failed. `domain` says whose problem it is: "user", "external", "internal", "memory"
    (out of memory), "refused" (state that the program cannot read) or "damage" (of a state file).

    `operator`, `trace`, `key` and `record` are those of a failed call of a user function, `file` and `missing` those of
    a damaged state file. `round` says in which round of an iteration it happened, if in any."""

    domain: str
    vertex: str
    problem: str
    hint: str | None = None
    operator: str = ""
    trace: str = ""
    key: str | None = None
    record: str | None = None
    file: str = ""
    missing: bool = False
    round: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {"version": VERSION, **vars(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TaskFailure:
        """Return the inverse of `to_json`."""
        if data["version"] != VERSION:
            raise UnknownReportVersion(data["version"])
        return cls(**{name: value for name, value in data.items() if name != "version"})


def pack_report(report: TaskReport) -> bytes:
    """Return a report as a block."""
    payload = dump_pickle((report.to_json(), report.results, report.accumulators))
    return pack_header(BlockKind.REPORT, REPORT_EDGE, report.subtask, 0) + payload


def unpack_report(block: bytes) -> TaskReport:
    """Return the report in a block of the driver's own job."""
    data, results, accumulators = pickle.loads(memoryview(block)[HEADER_SIZE:])
    try:
        return TaskReport.from_json(data, results, accumulators)
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise DamagedBlock(len(block), problem) from None


def pack_failure(subtask: int, failure: TaskFailure) -> bytes:
    """Return a failure as a block."""
    return pack_header(BlockKind.FAILURE, REPORT_EDGE, subtask, 0) + json.dumps(failure.to_json()).encode()


def unpack_failure(block: bytes) -> TaskFailure:
    """Return the failure in a block."""
    try:
        return TaskFailure.from_json(json.loads(block[HEADER_SIZE:]))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as problem:
        raise DamagedBlock(len(block), problem) from None
