"""Traits of an operator of a table program, as text that is stored with its state.

Promises: traits are plain text; two operators with equal `fixed` traits can read one another's state; `from_json` is
the inverse of `to_json`.
Does not know: plans, state, or how traits are computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

READS = "reads"  # the fixed trait that describes the inputs of an operator


@dataclass(frozen=True)
class OperatorTraits:
    """The traits of an operator: the table it belongs to, its type, and what its state depends on.

    The state depends on the `fixed` traits: its key, its aggregates, its rows, its inputs. The `free` traits may
    change, such as the condition of a filter; they are shown to the user."""

    scope: str
    kind: str
    fixed: Mapping[str, str] = field(default_factory=dict)
    free: Mapping[str, str] = field(default_factory=dict)

    @property
    def keeps(self) -> bool:
        """Whether the operator has state, or a position in an external system."""
        return bool(self.fixed.keys() - {READS})

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {"scope": self.scope, "kind": self.kind, "fixed": dict(self.fixed), "free": dict(self.free)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> OperatorTraits:
        """Return the inverse of `to_json`."""
        return cls(_text(data["scope"]), _text(data["kind"]), _texts(data["fixed"]), _texts(data["free"]))

    def changes(self, later: OperatorTraits) -> tuple[str, ...]:
        """Return the differences to `later` as texts; those that affect state come first."""
        return (*_changes(self.fixed, later.fixed), *_changes(self.free, later.free))

    def breaks(self, later: OperatorTraits) -> tuple[str, ...]:
        """Return the reasons why `later` cannot read the state of this operator."""
        own_traits = [{name: text for name, text in traits.fixed.items() if name != READS} for traits in (self, later)]
        return tuple(_changes(*own_traits)) or tuple(
            f"what it {change}" for change in _changes(self.fixed, later.fixed)
        )

    def similarity(self, other: OperatorTraits) -> int:
        """Return how many of the fixed traits are equal."""
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
