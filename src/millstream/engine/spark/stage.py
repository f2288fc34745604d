"""What both kinds of jobs send to Spark for one of their stages.

Promises: a stage is small: the program travels once, as a broadcast, and is unpacked once in a worker; files and
packages of the job are in place before it is.
Does not know: how blocks travel."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

from pyspark import Broadcast, SparkContext, TaskContext

from millstream.engine import slot
from millstream.engine.contract import Deployment
from millstream.engine.dependencies import Dependencies, activate
from millstream.engine.spark.broadcasts import LARGE

_deployments: dict[str, Deployment] = {}


@dataclass(frozen=True)
class Parts:
    """What all stages of a deployment have in common."""

    deployment: str
    program: Broadcast[bytes]
    dependencies: Dependencies | None
    bundle: Broadcast[bytes] | None

    @property
    def broadcasts(self) -> list[Broadcast[bytes]]:
        """What every command refers to."""
        return [self.program] if self.bundle is None else [self.program, self.bundle]


class Stage:
    """One level of a deployment, for one request."""

    def __init__(self, parts: Parts, level: int, request: slot.LevelRequest) -> None:
        self._parts = parts
        self._level = level
        self._packed: bytes | Broadcast[bytes] = pickle.dumps(request, 5)

    def send_apart(self, context: SparkContext) -> list[Broadcast[bytes]]:
        """Have a large request travel as a broadcast; gives it, for the caller to end it."""
        if not isinstance(self._packed, bytes) or len(self._packed) <= LARGE:
            return []
        self._packed = context.broadcast(self._packed)
        return [self._packed]

    def _deployed(self) -> Deployment:
        """The program, as this worker has it."""
        parts = self._parts
        activate_parts(parts)  # before the program, which may be made of its modules
        found = _deployments.get(parts.deployment)
        if found is None:
            _deployments.clear()
            found = _deployments[parts.deployment] = pickle.loads(parts.program.value)
        return found

    def _request(self) -> slot.LevelRequest:
        """What is asked of this level."""
        packed = self._packed
        request: slot.LevelRequest = pickle.loads(packed if isinstance(packed, bytes) else packed.value)
        return request


def activate_parts(parts: Parts) -> None:
    """Make the files and packages of the job usable in this worker."""

    def read() -> bytes:
        assert parts.bundle is not None
        return parts.bundle.value

    activate(parts.dependencies, read)


def attempt_name() -> str:
    """A name that no other attempt of any task has."""
    task = TaskContext.get()
    return f"{task.stageId()}.{task.taskAttemptId()}" if task is not None else "0"
