"""What an operator of a table program is, told in words that survive the program.

Promises: plain text only; two operators with equal `fixed` traits can read one another's state; reading gives back what
was written.
Does not know: plans, state, or how traits are found out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

READS = "reads"  # the fixed trait of what stands before an operator


@dataclass(frozen=True)
class OperatorTraits:
    """An operator: the table it works for, its kind, what its state is made of, and what may change under it.

    `fixed` is what the state depends on: its key, its aggregates, its rows, what it reads. `free` is the rest that a
    person would ask for, such as the condition of a filter."""

    scope: str
    kind: str
    fixed: Mapping[str, str] = field(default_factory=dict)
    free: Mapping[str, str] = field(default_factory=dict)

    @property
    def keeps(self) -> bool:
        """Whether there is state, or a place in the world outside, that is this operator's own."""
        return bool(self.fixed.keys() - {READS})

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {"scope": self.scope, "kind": self.kind, "fixed": dict(self.fixed), "free": dict(self.free)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> OperatorTraits:
        """The inverse of `to_json`."""
        return cls(_text(data["scope"]), _text(data["kind"]), _texts(data["fixed"]), _texts(data["free"]))

    def changes(self, later: OperatorTraits) -> tuple[str, ...]:
        """What is different in `later`, as notes for a person; what state depends on comes first."""
        return (*_changes(self.fixed, later.fixed), *_changes(self.free, later.free))

    def breaks(self, later: OperatorTraits) -> tuple[str, ...]:
        """Why `later` cannot read this one's state."""
        own = [{name: text for name, text in each.fixed.items() if name != READS} for each in (self, later)]
        return tuple(_changes(*own)) or tuple(f"what it {each}" for each in _changes(self.fixed, later.fixed))

    def likeness(self, other: OperatorTraits) -> int:
        """How many of the fixed traits are the same."""
        return sum(other.fixed.get(name) == text for name, text in self.fixed.items())


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name, ""), after.get(name, "")
        if old != new:
            yield f"{name}: {old or 'none'} becomes {new or 'none'}"


def _text(value: Any) -> str:
    if not isinstance(value, str):
        message = f"{value!r} is not text"
        raise TypeError(message)
    return value


def _texts(value: Any) -> dict[str, str]:
    return {_text(name): _text(text) for name, text in dict(value).items()}
