"""What occurs several times in expressions, so that it is computed once.

Promises: only what has the same value wherever it stands: no user's function, no chance, no clock.
Does not know: how expressions are computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable

from millstream.sql.expressions.nodes import Apply, Choose, Convert, Expression, UserCall, walk
from millstream.sql.functions.library import function_named

RANDOM = frozenset({"RAND", "RAND_INTEGER", "UUID"})


def is_pure(expression: Expression) -> bool:
    """Whether an expression has the same value whenever it is computed: no user's function, no chance, no clock."""
    return not any(
        isinstance(each, UserCall) or (isinstance(each, Apply) and not function_named(each.function).deterministic)
        for each in walk(expression)
    )


def is_random(expression: Expression) -> bool:
    """Whether an expression has another value for each row and each time it is computed."""
    return any(
        (isinstance(each, UserCall) and not each.function.deterministic)
        or (isinstance(each, Apply) and each.function in RANDOM)
        for each in walk(expression)
    )


class Shared(dict[Expression, Hashable]):
    """What is computed once a frame, and the key under which a frame knows it; numbers the calls that are computed
    each by itself, in the order in which expressions are compiled together."""

    _sites = 0

    def next_site(self) -> int:
        """The number of the next call."""
        self._sites += 1
        return self._sites


def repeated(expressions: Iterable[Expression]) -> Shared:
    """What is worth computing once, each with a key of its own."""
    times = Counter(each for expression in expressions for each in walk(expression) if _worth_keeping(each))
    return Shared({each: object() for each, count in times.items() if count > 1 and is_pure(each)})


def _worth_keeping(expression: Expression) -> bool:
    if isinstance(expression, Apply):
        return expression.function not in ("AND", "OR")  # of a long chain every piece would be compared with every one
    return isinstance(expression, Convert | Choose)
