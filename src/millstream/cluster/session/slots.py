"""The slots of a session cluster, as a pure value.

Promises: granted slots never exceed the total. Jobs get slots in the order of their requests, so that small jobs do not
starve large ones; a job that can never fit is refused.
Does not know: what runs in a slot, and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class SlotRequest:
    """The slots that one job of a program needs."""

    program: str
    job: str
    slots: int

    @property
    def key(self) -> tuple[str, str]:
        """What the request is known by."""
        return self.program, self.job


@dataclass(frozen=True)
class Granted:
    """The job has its slots."""


@dataclass(frozen=True)
class Waiting:
    """The job waits for slots."""

    reason: str


@dataclass(frozen=True)
class Refused:
    """The job cannot run here."""

    reason: str


Verdict = Granted | Waiting | Refused


@dataclass(frozen=True)
class SlotPool:
    """The slots, the granted requests, and the waiting requests, oldest first."""

    total: int
    promised: Mapping[tuple[str, str], int] = field(default_factory=dict)
    waiting: tuple[SlotRequest, ...] = ()

    @property
    def free(self) -> int:
        """The slots that are not granted."""
        return self.total - sum(self.promised.values())

    def request(self, request: SlotRequest) -> tuple[SlotPool, Verdict]:
        """Return the pool after a request, and its verdict. A job that has slots can request another number of them: it
        gets them immediately, or keeps those it has."""
        held = self.promised.get(request.key, 0)
        if request.slots > self.total:
            return self, Refused(f"the job needs {request.slots} slots, and the cluster has {self.total}")
        if held and request.slots - held > self.free:
            return self, Refused(f"the job needs {request.slots - held} more slots, and {self.free} are free")
        if held or (not self.waiting and request.slots <= self.free):
            return replace(self, promised={**self.promised, request.key: request.slots}), Granted()
        if request not in self.waiting:
            self = replace(self, waiting=(*self.waiting, request))
        return self, Waiting(self.explain(request))

    def release(self, program: str, job: str | None = None) -> tuple[SlotPool, tuple[SlotRequest, ...]]:
        """Return the pool without the slots and requests of a job, or of all jobs of a program, and the requests that
        are granted now."""

        def is_released(key: tuple[str, str]) -> bool:
            return key[0] == program and job in (None, key[1])

        promised = {key: slots for key, slots in self.promised.items() if not is_released(key)}
        waiting = [request for request in self.waiting if not is_released(request.key)]
        free = self.total - sum(promised.values())
        granted = []
        while waiting and waiting[0].slots <= free:
            granted.append(waiting.pop(0))
            free -= granted[-1].slots
            promised[granted[-1].key] = granted[-1].slots
        return SlotPool(self.total, promised, tuple(waiting)), tuple(granted)

    def explain(self, request: SlotRequest) -> str:
        """Return why a request waits."""
        before = self.waiting.index(request)
        text = f"waits for {request.slots} slots: {self.free} of {self.total} are free"
        return f"{text}, and {before} jobs wait before it" if before else text
