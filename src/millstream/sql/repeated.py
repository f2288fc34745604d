"""What occurs several times in expressions, so that it is computed once.

Promises: only what has the same value wherever it stands: no user's function, no chance, no clock.
Does not know: how expressions are computed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable

from millstream.sql.expressions import Apply, Choose, Convert, Expression, UserCall, walk
from millstream.sql.functions.library import function_named


def is_pure(expression: Expression) -> bool:
    """Whether an expression has the same value whenever it is computed: no user's function, no chance, no clock."""
    return not any(
        isinstance(each, UserCall) or (isinstance(each, Apply) and not function_named(each.function).deterministic)
        for each in walk(expression)
    )


def repeated(expressions: Iterable[Expression]) -> dict[Expression, Hashable]:
    """What is worth computing once, each with a key of its own."""
    times = Counter(each for expression in expressions for each in walk(expression) if _worth_keeping(each))
    return {each: object() for each, count in times.items() if count > 1 and is_pure(each)}


def _worth_keeping(expression: Expression) -> bool:
    if isinstance(expression, Apply):
        return expression.function not in ("AND", "OR")  # of a long chain every piece would be compared with every one
    return isinstance(expression, Convert | Choose)
