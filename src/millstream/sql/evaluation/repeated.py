"""Repeated subexpressions, which are computed once.

Promises: only expressions with the same value at each occurrence are shared: no user-defined functions, random values
or current time.
Does not know: how expressions are computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable

from millstream.sql.expressions.nodes import Apply, Choose, Convert, Expression, UserCall, walk
from millstream.sql.functions.library import get_function

RANDOM = frozenset({"RAND", "RAND_INTEGER", "UUID"})


def is_pure(expression: Expression) -> bool:
    """Return whether an expression always has the same value: no user-defined function, random value or current
    time."""
    return not any(
        isinstance(node, UserCall) or (isinstance(node, Apply) and not get_function(node.function).deterministic)
        for node in walk(expression)
    )


def is_random(expression: Expression) -> bool:
    """Return whether an expression has another value for each row and each computation."""
    return any(
        (isinstance(node, UserCall) and not node.function.deterministic)
        or (isinstance(node, Apply) and node.function in RANDOM)
        for node in walk(expression)
    )


class Shared(dict[Expression, Hashable]):
    """Expressions that are computed once for a frame, with the keys of their cached results.

    It also numbers the calls of non-deterministic functions, in the order in which expressions are compiled
    together."""

    _sites = 0

    def next_site(self) -> int:
        """Return the index of the next call of a non-deterministic function."""
        self._sites += 1
        return self._sites


def find_repeated(expressions: Iterable[Expression]) -> Shared:
    """Return the repeated subexpressions, each with a key of its own."""
    counts = Counter(node for expression in expressions for node in walk(expression) if _is_worth_caching(node))
    return Shared({node: object() for node, count in counts.items() if count > 1 and is_pure(node)})


def _is_worth_caching(expression: Expression) -> bool:
    if isinstance(expression, Apply):
        return expression.function not in (
            "AND",
            "OR",
        )  # in a long chain, every part would be compared with all others
    return isinstance(expression, Convert | Choose)
