"""Predicates and conditional values as methods of expressions.

Promises: PyFlink's names, and SQL's three-valued logic.
Does not know: the operators & | ~."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.sql.syntax import tree as s
from millstream.table.expression.terms import Term, function_property, to_node

if TYPE_CHECKING:
    from millstream.table.expression.expression import Expression


class Conditions(Term):
    """Predicates and conditional values."""

    __slots__ = ()

    is_null = function_property("IS NULL", "Whether the value is NULL.")
    is_not_null = function_property("IS NOT NULL", "Whether the value is not NULL.")
    is_true = function_property("IS TRUE", "Whether the value is TRUE.")
    is_false = function_property("IS FALSE", "Whether the value is FALSE.")
    is_not_true = function_property("IS NOT TRUE", "Whether the value is not TRUE.")
    is_not_false = function_property("IS NOT FALSE", "Whether the value is not FALSE.")

    def between(self, lower_bound: Any, upper_bound: Any) -> Expression:
        """Return whether the value is at least a lower bound and at most an upper bound."""
        return self._call("BETWEEN", self, lower_bound, upper_bound)

    def not_between(self, lower_bound: Any, upper_bound: Any) -> Expression:
        """Return whether the value is less than a lower bound or greater than an upper bound."""
        return ~self.between(lower_bound, upper_bound)

    def then(self, if_true: Any, if_false: Any) -> Expression:
        """Return one of two values, depending on whether this condition is TRUE."""
        return self._of(s.Case(0, None, ((self._node, to_node(if_true)),), to_node(if_false)))

    def if_null(self, null_replacement: Any) -> Expression:
        """Return the value, or a replacement if it is NULL."""
        return self._call("IFNULL", self, null_replacement)

    def in_(self, first_element_or_table: Any, *remaining_elements: Any) -> Expression:
        """Return whether the value is in a list of values, or in the only column of a table."""
        plan = getattr(first_element_or_table, "_plan", None)
        if plan is not None:
            star = s.Select(0, ((s.Star(0), None),), s.PlanSource(0, plan))
            return self._of(s.In(0, self._node, (), s.Query(0, star), False))
        items = tuple(map(to_node, (first_element_or_table, *remaining_elements)))
        return self._of(s.In(0, self._node, items, None, False))
