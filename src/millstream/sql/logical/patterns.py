"""A bound MATCH_RECOGNIZE: its pattern, and the values that its expressions need.

Promises: frozen values, which compiled plans store.
Does not know: automata, operators."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.runtime.nfa.pattern import Skip
from millstream.sql.expressions.nodes import AggregateCall, Expression


@dataclass(frozen=True)
class PatternRef:
    """A value that an expression of a pattern needs: of a row, or an aggregate over rows of a variable (None: all)."""

    variable: str | None
    first: bool = False
    offset: int = 0
    expr: Expression | None = None
    call: AggregateCall | None = None
    args: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class MatchDescription:
    """A bound MATCH_RECOGNIZE."""

    steps: tuple[tuple[str, int, int | None, bool], ...]
    define: tuple[tuple[str, Expression, tuple[PatternRef, ...]], ...]
    measures: tuple[tuple[Expression, tuple[PatternRef, ...]], ...]
    partition: tuple[int, ...]
    time: int
    skip: Skip
    within: int | None
    subsets: tuple[tuple[str, tuple[str, ...]], ...]
    processing: bool
