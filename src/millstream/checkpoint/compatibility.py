"""Compares a checkpoint or savepoint with a program: which state a restore would keep, migrate, drop or refuse.

Promises: the outcome for every operator and state, by the same rules as the restore itself.
Does not know: how a program is compiled, or how its declared states are determined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from millstream.checkpoint.metadata import CheckpointMetadata, OperatorSnapshot
from millstream.checkpoint.restore import OperatorShape
from millstream.checkpoint.state_tables import Read, describe_tables
from millstream.job.traits import OperatorTraits
from millstream.state.deltas import IncompatibleState, TableSchema, display_name


class Outcome(Enum):
    """What a restore does with an operator or a state."""

    KEPT = "kept"
    MIGRATED = "migrated"
    NEW = "new"
    DROPPED = "dropped"
    REFUSED = "refused"


@dataclass(frozen=True)
class Verdict:
    """The outcome of a restore for an operator, or for one of its states, and the reasons."""

    operator: str
    outcome: Outcome
    state: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class DeclaredOperator:
    """An operator of the program: its shape, its uid, and the tables it declares; None if they are not known."""

    shape: OperatorShape
    uid: str | None = None
    tables: Mapping[str, TableSchema] | None = field(default=None, compare=False)
    traits: OperatorTraits | None = None

    @property
    def display_name(self) -> str:
        """The uid; the name if there is no uid."""
        return self.uid or self.shape.name


def compare(
    metadata: CheckpointMetadata, read: Read, program: Sequence[DeclaredOperator], *, allow_unclaimed: bool = False
) -> list[Verdict]:
    """Compare all operators and states of a snapshot and a program."""
    by_id = {snapshot.operator: snapshot for snapshot in metadata.operators}
    new_traits = [
        operator.traits for operator in program if operator.traits is not None and operator.shape.operator not in by_id
    ]
    verdicts: list[Verdict] = []
    for operator in program:
        verdicts += _compare_operator(operator, by_id.pop(operator.shape.operator, None), read)
    for unclaimed in by_id.values():
        pending = metadata.pending(unclaimed.operator)
        successor = _find_successor(unclaimed, new_traits)
        verdicts += _judge_unclaimed(unclaimed, pending, successor, allow_unclaimed=allow_unclaimed)
    return verdicts


def _find_successor(unclaimed: OperatorSnapshot, new_traits: list[OperatorTraits]) -> OperatorTraits | None:
    """Return the operator of a table program that most likely replaces another one; it is removed from `new_traits`."""
    traits = unclaimed.traits
    if traits is None:
        return None
    candidates = [new for new in new_traits if (new.scope, new.kind) == (traits.scope, traits.kind)]
    successor = max(candidates, key=traits.similarity, default=None)
    if successor is not None:
        new_traits.remove(successor)
    return successor


def _is_hidden(traits: OperatorTraits | None, notes: Sequence[str] = ()) -> bool:
    """Return whether an operator of a table program is not reported, because it has no state and has not changed."""
    return traits is not None and not traits.keeps and not notes


def _compare_operator(operator: DeclaredOperator, old: OperatorSnapshot | None, read: Read) -> Iterable[Verdict]:
    title, tables, shape = operator.display_name, operator.tables, operator.shape
    if old is None:
        if _is_hidden(operator.traits):
            return
        yield Verdict(title, Outcome.NEW, notes=("starts without state",) if tables else ())
        return
    has_traits = old.traits is not None and operator.traits is not None
    notes = list(old.traits.changes(operator.traits)) if has_traits else []  # type: ignore[union-attr, arg-type]
    if _is_hidden(operator.traits, notes):
        return
    if old.parallelism != shape.parallelism:
        notes.append(f"parallelism {old.parallelism} becomes {shape.parallelism}")
    if old.has_state and old.max_parallelism != shape.max_parallelism:
        reason = f"max parallelism was {old.max_parallelism}, the program asks for {shape.max_parallelism}"
        yield Verdict(title, Outcome.REFUSED, notes=(reason, f"set_max_parallelism({old.max_parallelism})"))
    else:
        yield Verdict(title, Outcome.KEPT, notes=tuple(notes))
    descriptions = describe_tables(old, read)
    for name, written in descriptions.items():
        schema = None if tables is None else tables.get(name)
        if schema is None:
            if operator.traits is not None and tables is not None and not name.startswith("timers/"):
                reason = "this release stores the state of this operator in another form"
                yield Verdict(title, Outcome.REFUSED, display_name(name), (reason,))
                continue
            note = "kept until the function declares it"
            yield Verdict(title, Outcome.KEPT, display_name(name), () if tables is None else (note,))
            continue
        try:
            _, resolution = schema.resolve(written)
        except IncompatibleState as problem:
            yield Verdict(title, Outcome.REFUSED, display_name(name), (problem.problem.message,))
            continue
        outcome = Outcome.MIGRATED if resolution.notes else Outcome.KEPT
        yield Verdict(title, outcome, display_name(name), resolution.notes)
    if has_traits or tables is None:  # operators with equal traits have the same tables, so a missing table was empty
        return
    for name in tables:
        if name not in descriptions and not name.startswith("timers/"):
            yield Verdict(title, Outcome.NEW, display_name(name), ("starts empty",))


def _judge_unclaimed(
    unclaimed: OperatorSnapshot, pending: int, successor: OperatorTraits | None, *, allow_unclaimed: bool
) -> Iterable[Verdict]:
    title = unclaimed.uid or unclaimed.name
    if pending:
        staged = f"{pending} committables of its output were staged and not committed"
        remedy = "" if allow_unclaimed else "; set this uid for the sink, or drop the output with -n"
        outcome = Outcome.DROPPED if allow_unclaimed else Outcome.REFUSED
        yield Verdict(title, outcome, notes=(staged, f"the program has no such sink{remedy}"))
    elif unclaimed.traits is not None:
        yield from _judge_unclaimed_table(
            title, unclaimed, unclaimed.traits, successor, allow_unclaimed=allow_unclaimed
        )
    elif not unclaimed.has_state:
        yield Verdict(title, Outcome.DROPPED, notes=("has no state",))
    elif allow_unclaimed:
        yield Verdict(title, Outcome.DROPPED, notes=("the program has no such operator",))
    else:
        reason = "the program has no such operator; set this uid for an operator, or drop the state with -n"
        yield Verdict(title, Outcome.REFUSED, notes=(reason,))


def _judge_unclaimed_table(
    title: str,
    unclaimed: OperatorSnapshot,
    traits: OperatorTraits,
    successor: OperatorTraits | None,
    *,
    allow_unclaimed: bool,
) -> Iterable[Verdict]:
    """Return the verdict on an operator of a table program that no operator claims, with the change as its reason."""
    if _is_hidden(traits):
        return
    notes = ("the statements have no such operator any more",) if successor is None else traits.breaks(successor)
    if not unclaimed.has_state:
        yield Verdict(title, Outcome.DROPPED, notes=(*notes, "has no state"))
    elif allow_unclaimed:
        yield Verdict(title, Outcome.DROPPED, notes=notes)
    else:
        yield Verdict(title, Outcome.REFUSED, notes=(*notes, "its state cannot be kept; -n drops it"))
