"""State that nothing touches is forgotten: table.exec.state.ttl and the hint STATE_TTL.

Promises: a key counts as forgotten once the time to live has passed since it was last written, in processing time, to
the millisecond; what it had is freed at most an eighth of that time later, while epochs run.
Does not know: what operators keep; they ask whether a key is alive, and are told which are not.

When keys were written is kept in steps of an eighth of the time to live: a key costs one more write in each step in
which it is written, and freeing looks at the keys of the oldest steps only."""

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
    """The steps that have keys, in order, by the name of the state. A state that is not here is looked up."""

    part_name: ClassVar[str] = "expiry"

    steps: dict[str, list[int]] = field(default_factory=dict)

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Self:
        """Copy every list."""
        return cls({name: list(steps) for name, steps in fields.get("steps", {}).items()})

    @classmethod
    def take_unversioned(cls, memory: dict[str, Any]) -> Self:
        """Release 0.1 had a key for each state."""
        keys = [key for key in memory if key.endswith("/steps")]
        return cls({key.removesuffix("/steps"): list(memory.pop(key)) for key in keys})


class Expiry:
    """The keys of one kind of state, and when they were written. `ttl` is in milliseconds."""

    def __init__(self, context: OperatorContext, name: str, ttl: int) -> None:
        self._context, self._ttl, self._name = context, ttl, name
        self._grain = max(1, ttl // _STEPS)
        self._times = context.state.table(f"{name}/written", Types.LONG())
        self._steps = context.state.table(f"{name}/steps", Types.BOOLEAN())

    def _open(self) -> list[int]:
        """The steps that have keys, in order; found in state by subtasks of another parallelism."""
        steps = self._context.memory.part(ExpirySteps).steps
        if self._name not in steps:
            steps[self._name] = sorted(self._steps.namespaces())
        return steps[self._name]

    def alive(self, key: Any) -> bool:
        """Whether the key was written within the time to live."""
        written = self._times.get(None, key)
        return written is not ABSENT and self._context.now - written < self._ttl

    def touch(self, key: Any) -> None:
        """The key is written now."""
        now = self._context.now
        before = self._times.get(None, key)
        if before == now:
            return
        self._times.put(None, key, now)
        step = now // self._grain
        if before is ABSENT or before // self._grain != step:
            opened = self._open()
            if step not in opened:
                opened.append(step)
                opened.sort()
            self._steps.put(step, key, True)

    def forget(self, key: Any) -> None:
        """The key has nothing any more."""
        self._times.delete(None, key)

    def expired(self) -> Iterator[Any]:
        """The keys to free; each is told once."""
        opened = self._open()
        while opened and (opened[0] + 1) * self._grain - 1 + self._ttl <= self._context.now:
            step = opened.pop(0)
            for key, _ in list(self._steps.scan(step)):
                if not self.alive(key):
                    self._times.delete(None, key)
                    yield key
            self._steps.clear_namespace(step)


def expiry_of(context: OperatorContext, name: str, ttl: int | None) -> Expiry | None:
    """The expiry of a state, None where it is kept for ever."""
    return None if ttl is None else Expiry(context, name, ttl)
