"""Identities of operators, which assign state to them when the plan around them changes.

Promises: an operator's uid depends on the table that it writes to, on what its state consists of and on what it reads;
not on other statements, their order, later operators, or conditions. So state under a uid that is found again can be
read, and state that cannot be read is not assigned. In one plan, uids are unique.
Does not know: savepoints.

If one INSERT has the same operator twice (a table joined with itself), they are distinguished by their order. An
operator that several INSERTs share belongs to the first of their tables by name."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from millstream.job.traits import READS, OperatorTraits
from millstream.sql.expressions.stable_text import compute_digest, shorten_table_name
from millstream.sql.physical.identity.column_texts import ColumnTextsOfPlans
from millstream.sql.physical.identity.state_traits import state_traits
from millstream.sql.physical.nodes import Identity, Operation, Origin

Identities = dict[int, Identity]


def assign_identities(operations: Sequence[Operation], taken: Iterable[str] = ()) -> Identities:
    """Return the identity of every operation of some plans, by `id`; uids in `taken` are not used again."""
    identities_by_id: Identities = {}
    used = set(taken)
    texts, scopes = ColumnTextsOfPlans(), _find_scopes(operations)
    names: dict[int, str] = {}  # of operations, in the trait `reads` of later ones
    for operation in order_inputs_first(operations):
        traits = state_traits(operation, texts.context(operation))
        fixed, free = dict(traits.fixed), dict(traits.free)
        is_stateless = not fixed and bool(operation.inputs)
        input_names = [names[id(input_operation)] for input_operation in operation.inputs]
        reads = " & ".join(sorted(set(input_names)) if operation.name == "Union" else input_names)
        if operation.sink is None and reads:
            fixed[READS] = reads
        name = compute_digest(json.dumps([operation.name, sorted(fixed.items())]))[:8]
        table = fixed.get("table")
        names[id(operation)] = reads if is_stateless else table or f"{operation.name}/{name}"
        scope = scopes[id(operation)]
        traits_of_operator = OperatorTraits(scope, operation.name, fixed, free)
        identities_by_id[id(operation)] = operation.identity or Identity(
            _make_unique(f"{scope}/{operation.name}/{name}", used), traits_of_operator
        )
    return identities_by_id


def _make_unique(uid: str, used: set[str]) -> str:
    number, candidate = 1, uid
    while candidate in used:
        number += 1
        candidate = f"{uid}/{number}"
    used.add(candidate)
    return candidate


def _find_scopes(operations: Sequence[Operation]) -> dict[int, str]:
    """Return the sink table of each operation."""
    scopes: dict[int, str] = {}
    named = [(_find_scope(sink), sink) for sink in operations]
    for scope, operation in sorted(named, key=lambda pair: pair[0]):
        for before in order_inputs_first((operation,)):
            scopes.setdefault(id(before), scope)
    return scopes


def _find_scope(operation: Operation) -> str:
    origin = operation.origin
    return shorten_table_name(origin.name) if operation.sink is not None and isinstance(origin, Origin) else "query"


def order_inputs_first(operations: Sequence[Operation]) -> list[Operation]:
    """Return every operation once, after its inputs."""
    visited: dict[int, Operation] = {}

    def visit(operation: Operation) -> None:
        if id(operation) not in visited:
            for input_operation in operation.inputs:
                visit(input_operation)
            visited[id(operation)] = operation

    for operation in operations:
        visit(operation)
    return list(visited.values())
