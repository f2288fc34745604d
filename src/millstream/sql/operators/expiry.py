"""State time to live: table.exec.state.ttl and the hint STATE_TTL.

Promises: a key is expired when the time to live has passed since it was last written, in processing time, to the
millisecond. Its state is deleted at most an eighth of that time later, while epochs run.
Does not know: the state of the operators. They call `is_alive`, and delete the state of the keys that expired.

The time of the last write is stored in steps of an eighth of the time to live. A key costs one more write for each step
in which it is written, and a clean-up reads only the keys of the oldest steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from millstream.runtime.memory import MemoryPart
from millstream.runtime.operator import OperatorContext
from millstream.state.store import ABSENT
from millstream.types.factory import Types

_STEPS = 8


@dataclass
class ExpirySteps(MemoryPart):
    """The steps that have keys, in order, by the name of the state. A missing state is read from its table."""

    part_name: ClassVar[str] = "expiry"

    steps: dict[str, list[int]] = field(default_factory=dict)

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Self:
        """Copy the fields, with their lists."""
        return cls({name: list(steps) for name, steps in fields.get("steps", {}).items()})

    @classmethod
    def take_unversioned(cls, memory: dict[str, Any]) -> Self:
        """Read the memory of release 0.1, which had a key for each state."""
        keys = [key for key in memory if key.endswith("/steps")]
        return cls({key.removesuffix("/steps"): list(memory.pop(key)) for key in keys})


class Expiry:
    """The keys of one state, and when they were last written. `ttl` is in milliseconds."""

    def __init__(self, context: OperatorContext, name: str, ttl: int) -> None:
        self._context, self._ttl, self._name = context, ttl, name
        self._grain = max(1, ttl // _STEPS)
        self._times = context.state.table(f"{name}/written", Types.LONG())
        self._steps = context.state.table(f"{name}/steps", Types.BOOLEAN())

    def _find_steps_with_keys(self) -> list[int]:
        """Return the steps that have keys, in order; after a change of parallelism they are read from state."""
        steps = self._context.memory.part(ExpirySteps).steps
        if self._name not in steps:
            steps[self._name] = sorted(self._steps.namespaces())
        return steps[self._name]

    def is_alive(self, key: Any) -> bool:
        """Return whether the key was written within the time to live."""
        written = self._times.get(None, key)
        return written is not ABSENT and self._context.now - written < self._ttl

    def touch(self, key: Any) -> None:
        """Record that the key is written now."""
        now = self._context.now
        before = self._times.get(None, key)
        if before == now:
            return
        self._times.put(None, key, now)
        step = now // self._grain
        if before is ABSENT or before // self._grain != step:
            steps = self._find_steps_with_keys()
            if step not in steps:
                steps.append(step)
                steps.sort()
            self._steps.put(step, key, True)

    def remove(self, key: Any) -> None:
        """Remove a key whose state was deleted."""
        self._times.delete(None, key)

    def take_expired(self) -> Iterator[Any]:
        """Remove the expired keys, and iterate over them, so that the operator deletes their state."""
        steps = self._find_steps_with_keys()
        while steps and (steps[0] + 1) * self._grain - 1 + self._ttl <= self._context.now:
            step = steps.pop(0)
            for key, _ in list(self._steps.scan(step)):
                if not self.is_alive(key):
                    self._times.delete(None, key)
                    yield key
            self._steps.clear_namespace(step)


def find_expiry(context: OperatorContext, name: str, ttl: int | None) -> Expiry | None:
    """Return the expiry of a state, None if the state has no time to live."""
    return None if ttl is None else Expiry(context, name, ttl)
