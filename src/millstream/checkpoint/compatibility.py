"""A snapshot x a program: what would be kept, migrated, dropped or refused, before anything is stopped.

Promises: says of every operator and state what a restore would do, with the same rules that a restore follows.
Does not know: how a program is compiled, or how its states are found out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from millstream.checkpoint.contents import Read, descriptions
from millstream.checkpoint.metadata import CheckpointMetadata, OperatorSnapshot
from millstream.checkpoint.restore import OperatorShape
from millstream.job.traits import OperatorTraits
from millstream.state.deltas import IncompatibleState, TableSchema, shown_name


class Fate(Enum):
    """What becomes of something at a restore."""

    KEPT = "kept"
    MIGRATED = "migrated"
    NEW = "new"
    DROPPED = "dropped"
    REFUSED = "refused"


@dataclass(frozen=True)
class Verdict:
    """What becomes of an operator, or of one of its states, and why."""

    operator: str
    fate: Fate
    state: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Declared:
    """An operator of the program: its shape, its uid, and the tables it declares; None if that is not known."""

    shape: OperatorShape
    uid: str | None = None
    tables: Mapping[str, TableSchema] | None = field(default=None, compare=False)
    traits: OperatorTraits | None = None

    @property
    def called(self) -> str:
        """What a person calls it."""
        return self.uid or self.shape.name


def compare(
    metadata: CheckpointMetadata, read: Read, program: Sequence[Declared], *, allow_unclaimed: bool = False
) -> list[Verdict]:
    """The fate of everything in a snapshot and a program."""
    by_id = {each.operator: each for each in metadata.operators}
    fresh = [each.traits for each in program if each.traits is not None and each.shape.operator not in by_id]
    verdicts: list[Verdict] = []
    for each in program:
        old = by_id.pop(each.shape.operator, None)
        verdicts += _operator(each, old, read)
    for left in by_id.values():
        pending = metadata.pending(left.operator)
        verdicts += _unclaimed(left, pending, _successor(left, fresh), allow_unclaimed=allow_unclaimed)
    return verdicts


def _successor(left: OperatorSnapshot, fresh: list[OperatorTraits]) -> OperatorTraits | None:
    """The operator of a table program that has most likely taken the place of another; each is told of once."""
    traits = left.traits
    if traits is None:
        return None
    alike = [each for each in fresh if (each.scope, each.kind) == (traits.scope, traits.kind)]
    found = max(alike, key=traits.likeness, default=None)
    if found is not None:
        fresh.remove(found)
    return found


def _silent(traits: OperatorTraits | None, notes: Sequence[str] = ()) -> bool:
    """Whether nobody wants to hear of an operator of a table program: it keeps nothing, and has not changed."""
    return traits is not None and not traits.keeps and not notes


def _operator(each: Declared, old: OperatorSnapshot | None, read: Read) -> Iterable[Verdict]:
    called = each.called
    if old is None:
        if _silent(each.traits):
            return
        yield Verdict(called, Fate.NEW, notes=("starts without state",) if each.tables else ())
        return
    known = old.traits is not None and each.traits is not None
    notes = list(old.traits.changes(each.traits)) if known else []  # type: ignore[union-attr, arg-type]
    if _silent(each.traits, notes):
        return
    if old.parallelism != each.shape.parallelism:
        notes.append(f"parallelism {old.parallelism} becomes {each.shape.parallelism}")
    if old.has_state and old.max_parallelism != each.shape.max_parallelism:
        told = f"max parallelism was {old.max_parallelism}, the program asks for {each.shape.max_parallelism}"
        yield Verdict(called, Fate.REFUSED, notes=(told, f"set_max_parallelism({old.max_parallelism})"))
    else:
        yield Verdict(called, Fate.KEPT, notes=tuple(notes))
    found = descriptions(old, read)
    for name, written in found.items():
        schema = None if each.tables is None else each.tables.get(name)
        if schema is None:
            if each.traits is not None and each.tables is not None and not name.startswith("timers/"):
                told = "this release keeps the state of such an operator in another form"
                yield Verdict(called, Fate.REFUSED, shown_name(name), (told,))
                continue
            told = "carried along until the function asks for it"
            yield Verdict(called, Fate.KEPT, shown_name(name), () if each.tables is None else (told,))
            continue
        try:
            _, way = schema.resolved(written)
        except IncompatibleState as problem:
            yield Verdict(called, Fate.REFUSED, shown_name(name), (problem.problem.message,))
            continue
        yield Verdict(called, Fate.MIGRATED if way.notes else Fate.KEPT, shown_name(name), way.notes)
    for name in () if known or each.tables is None else each.tables:  # one known by traits has them all; this was empty
        if name not in found and not name.startswith("timers/"):
            yield Verdict(called, Fate.NEW, shown_name(name), ("starts empty",))


def _unclaimed(
    left: OperatorSnapshot, pending: int, successor: OperatorTraits | None, *, allow_unclaimed: bool
) -> Iterable[Verdict]:
    called = left.uid or left.name
    if pending:
        staged = f"{pending} committables of its output were staged and not committed"
        told = "the program has no such sink" + ("" if allow_unclaimed else "; give it this uid, or drop them (-n)")
        yield Verdict(called, Fate.DROPPED if allow_unclaimed else Fate.REFUSED, notes=(staged, told))
    elif left.traits is not None:
        yield from _unclaimed_table(called, left, left.traits, successor, allow_unclaimed=allow_unclaimed)
    elif not left.has_state:
        yield Verdict(called, Fate.DROPPED, notes=("has no state",))
    elif allow_unclaimed:
        yield Verdict(called, Fate.DROPPED, notes=("the program has no such operator",))
    else:
        told = "the program has no such operator; give one this uid, or allow its state to be dropped (-n)"
        yield Verdict(called, Fate.REFUSED, notes=(told,))


def _unclaimed_table(
    called: str,
    left: OperatorSnapshot,
    traits: OperatorTraits,
    successor: OperatorTraits | None,
    *,
    allow_unclaimed: bool,
) -> Iterable[Verdict]:
    """An operator of a table program that nobody takes: what has changed is the reason."""
    if _silent(traits):
        return
    notes = ("the statements have no such operator any more",) if successor is None else traits.breaks(successor)
    if not left.has_state:
        yield Verdict(called, Fate.DROPPED, notes=(*notes, "has no state"))
    elif allow_unclaimed:
        yield Verdict(called, Fate.DROPPED, notes=notes)
    else:
        yield Verdict(called, Fate.REFUSED, notes=(*notes, "its state cannot be kept; -n allows it to be dropped"))
