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

    @property
    def called(self) -> str:
        """What a person calls it."""
        return self.uid or self.shape.name


def compare(
    metadata: CheckpointMetadata, read: Read, program: Sequence[Declared], *, allow_unclaimed: bool = False
) -> list[Verdict]:
    """The fate of everything in a snapshot and a program."""
    by_id = {each.operator: each for each in metadata.operators}
    verdicts: list[Verdict] = []
    for each in program:
        old = by_id.pop(each.shape.operator, None)
        verdicts += _operator(each, old, read)
    for left in by_id.values():
        verdicts += _unclaimed(left, allow_unclaimed=allow_unclaimed)
    return verdicts


def _operator(each: Declared, old: OperatorSnapshot | None, read: Read) -> Iterable[Verdict]:
    called = each.called
    if old is None:
        yield Verdict(called, Fate.NEW, notes=("starts without state",) if each.tables else ())
        return
    notes = []
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
            told = "carried along until the function asks for it"
            yield Verdict(called, Fate.KEPT, shown_name(name), () if each.tables is None else (told,))
            continue
        try:
            _, way = schema.resolved(written)
        except IncompatibleState as problem:
            yield Verdict(called, Fate.REFUSED, shown_name(name), (problem.problem.message,))
            continue
        yield Verdict(called, Fate.MIGRATED if way.notes else Fate.KEPT, shown_name(name), way.notes)
    for name in each.tables or ():
        if name not in found and not name.startswith("timers/"):
            yield Verdict(called, Fate.NEW, shown_name(name), ("starts empty",))


def _unclaimed(left: OperatorSnapshot, *, allow_unclaimed: bool) -> Iterable[Verdict]:
    called = left.uid or left.name
    if not left.has_state:
        yield Verdict(called, Fate.DROPPED, notes=("has no state",))
    elif allow_unclaimed:
        yield Verdict(called, Fate.DROPPED, notes=("the program has no such operator",))
    else:
        told = "the program has no such operator; give one this uid, or allow its state to be dropped (-n)"
        yield Verdict(called, Fate.REFUSED, notes=(told,))
