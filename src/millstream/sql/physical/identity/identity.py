"""Who the operators of a plan are, so that state finds them when the plan around them changes.

Promises: an operator's uid follows from the table it works for, from what its state is made of and from what it reads;
not from other statements, their order, what comes after it, or conditions. So a uid that is found again has state that
can be read, and state that cannot be read has no taker. In one plan no uid is given twice.
Does not know: savepoints.

Where one INSERT has the same operator twice (a table joined with itself), they are told apart by their order; an
operator that several INSERTs share works for the first of their tables by name."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from millstream.job.traits import READS, OperatorTraits
from millstream.sql.expressions.stable_text import digest, short_name
from millstream.sql.physical.identity.column_texts import ColumnTextsOfPlans
from millstream.sql.physical.identity.state_traits import state_traits
from millstream.sql.physical.nodes import Identity, Operation, Origin

Identities = dict[int, Identity]


def identities(operations: Sequence[Operation], taken: Iterable[str] = ()) -> Identities:
    """The identity of every operation of some plans, by `id`; uids in `taken` are not given again."""
    found: Identities = {}
    used = set(taken)
    texts, scopes = ColumnTextsOfPlans(), _scopes(operations)
    marks: dict[int, str] = {}  # by which an operation is named in `reads` of those behind it
    for operation in inputs_first(operations):
        traits = state_traits(operation, texts.context(operation))
        fixed, free = dict(traits.fixed), dict(traits.free)
        passes = not fixed and bool(operation.inputs)
        before = [marks[id(each)] for each in operation.inputs]
        reads = " & ".join(sorted(set(before)) if operation.name == "Union" else before)
        if operation.sink is None and reads:
            fixed[READS] = reads
        mark = digest(json.dumps([operation.name, sorted(fixed.items())]))[:8]
        table = fixed.get("table")
        marks[id(operation)] = reads if passes else table or f"{operation.name}/{mark}"
        scope = scopes[id(operation)]
        described = OperatorTraits(scope, operation.name, fixed, free)
        found[id(operation)] = operation.identity or Identity(
            _free(f"{scope}/{operation.name}/{mark}", used), described
        )
    return found


def _free(uid: str, used: set[str]) -> str:
    number, found = 1, uid
    while found in used:
        number += 1
        found = f"{uid}/{number}"
    used.add(found)
    return found


def _scopes(operations: Sequence[Operation]) -> dict[int, str]:
    """The table each operation works for."""
    found: dict[int, str] = {}
    named = [(_scope(each), each) for each in operations]
    for scope, operation in sorted(named, key=lambda pair: pair[0]):
        for each in inputs_first((operation,)):
            found.setdefault(id(each), scope)
    return found


def _scope(operation: Operation) -> str:
    origin = operation.origin
    return short_name(origin.name) if operation.sink is not None and isinstance(origin, Origin) else "query"


def inputs_first(operations: Sequence[Operation]) -> list[Operation]:
    """Every operation once, after those it reads."""
    found: dict[int, Operation] = {}

    def visit(operation: Operation) -> None:
        if id(operation) not in found:
            for each in operation.inputs:
                visit(each)
            found[id(operation)] = operation

    for operation in operations:
        visit(operation)
    return list(found.values())
