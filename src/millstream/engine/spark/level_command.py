"""The command that Spark runs for each slot of a level: what epochs and batch jobs have in common.

Promises: a command is small: the program is broadcast once, and unpickled once in a worker, after the files and
packages of the job are in place.
Does not know: how blocks are exchanged."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

from pyspark import Broadcast, SparkContext, TaskContext

from millstream.engine import epoch_level
from millstream.engine.contract import Deployment
from millstream.engine.dependencies import Dependencies, activate
from millstream.engine.spark.broadcasts import LARGE

_deployments: dict[str, Deployment] = {}


@dataclass(frozen=True)
class DeployedProgram:
    """A program as it was broadcast, with its dependencies; all commands of a deployment refer to it."""

    deployment: str
    pickled: Broadcast[bytes]
    dependencies: Dependencies | None
    bundle: Broadcast[bytes] | None

    @property
    def broadcasts(self) -> list[Broadcast[bytes]]:
        """The broadcasts that every command refers to."""
        return [self.pickled] if self.bundle is None else [self.pickled, self.bundle]


class LevelCommand:
    """Runs one level of a deployment for one request."""

    def __init__(self, program: DeployedProgram, level: int, request: epoch_level.LevelRequest) -> None:
        self._program = program
        self._level = level
        self._packed: bytes | Broadcast[bytes] = pickle.dumps(request, 5)

    def broadcast_if_large(self, context: SparkContext) -> list[Broadcast[bytes]]:
        """Send a large request as a broadcast; returns it, for the caller to destroy."""
        if not isinstance(self._packed, bytes) or len(self._packed) <= LARGE:
            return []
        self._packed = context.broadcast(self._packed)
        return [self._packed]

    def _load_deployment(self) -> Deployment:
        """Return the program."""
        return load_deployment(self._program)

    def _request(self) -> epoch_level.LevelRequest:
        """Return the request of this level."""
        packed = self._packed
        request: epoch_level.LevelRequest = pickle.loads(packed if isinstance(packed, bytes) else packed.value)
        return request


def load_deployment(program: DeployedProgram) -> Deployment:
    """Return a program, from the cache of this worker if it is there."""
    activate_dependencies(program)  # before the program, which may import them
    deployment = _deployments.get(program.deployment)
    if deployment is None:
        _deployments.clear()
        deployment = _deployments[program.deployment] = pickle.loads(program.pickled.value)
    return deployment


def activate_dependencies(program: DeployedProgram) -> None:
    """Make the files and packages of the job usable in this worker."""

    def read() -> bytes:
        assert program.bundle is not None
        return program.bundle.value

    activate(program.dependencies, read)


def attempt_name() -> str:
    """Return a name that no other attempt of any task has."""
    task = TaskContext.get()
    return f"{task.stageId()}.{task.taskAttemptId()}" if task is not None else "0"
