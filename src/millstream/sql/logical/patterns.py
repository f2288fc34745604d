"""A bound MATCH_RECOGNIZE: its pattern, and the values that its expressions read.

Promises: frozen values, which compiled plans store.
Does not know: automata, operators."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.runtime.nfa.pattern import Skip
from millstream.sql.expressions.nodes import AggregateCall, Expression


@dataclass(frozen=True)
class PatternRef:
    """A value that an expression of a pattern reads.

    It is a value of one row, or an aggregate over the rows of a variable. The variable None means all rows of the
    match."""

    variable: str | None
    first: bool = False
    offset: int = 0
    expr: Expression | None = None
    call: AggregateCall | None = None
    args: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class MatchDescription:
    """The clauses of a MATCH_RECOGNIZE. Each step is (variable, minimum, maximum, greedy)."""

    steps: tuple[tuple[str, int, int | None, bool], ...]
    define: tuple[tuple[str, Expression, tuple[PatternRef, ...]], ...]
    measures: tuple[tuple[Expression, tuple[PatternRef, ...]], ...]
    partition: tuple[int, ...]
    time: int
    skip: Skip
    within: int | None
    subsets: tuple[tuple[str, tuple[str, ...]], ...]
    processing: bool
