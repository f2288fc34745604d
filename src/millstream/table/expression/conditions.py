"""Methods that test a value, and choose by what was found.

Promises: PyFlink's names; SQL's three-valued logic.
Does not know: the operators & | ~."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.sql.syntax import tree as s
from millstream.table.expression.terms import Term, applied, node

if TYPE_CHECKING:
    from millstream.table.expression.expression import Expression


class Conditions(Term):
    """What can be asked of a value."""

    __slots__ = ()

    is_null = applied("IS NULL", "Whether the value is NULL.")
    is_not_null = applied("IS NOT NULL", "Whether the value is not NULL.")
    is_true = applied("IS TRUE", "Whether the value is TRUE.")
    is_false = applied("IS FALSE", "Whether the value is FALSE.")
    is_not_true = applied("IS NOT TRUE", "Whether the value is not TRUE.")
    is_not_false = applied("IS NOT FALSE", "Whether the value is not FALSE.")

    def between(self, lower_bound: Any, upper_bound: Any) -> Expression:
        """Whether the value lies between two others."""
        return self._call("BETWEEN", self, lower_bound, upper_bound)

    def not_between(self, lower_bound: Any, upper_bound: Any) -> Expression:
        """Whether the value does not lie between two others."""
        return ~self.between(lower_bound, upper_bound)

    def then(self, if_true: Any, if_false: Any) -> Expression:
        """One value where this is TRUE, another where it is not."""
        return self._of(s.Case(0, None, ((self._node, node(if_true)),), node(if_false)))

    def if_null(self, null_replacement: Any) -> Expression:
        """The value, or another where it is NULL."""
        return self._call("IFNULL", self, null_replacement)

    def in_(self, first_element_or_table: Any, *remaining_elements: Any) -> Expression:
        """Whether the value is one of others, or in the only column of a table."""
        plan = getattr(first_element_or_table, "_plan", None)
        if plan is not None:
            star = s.Select(0, ((s.Star(0), None),), s.PlanSource(0, plan))
            return self._of(s.In(0, self._node, (), s.Query(0, star), False))
        items = tuple(node(each) for each in (first_element_or_table, *remaining_elements))
        return self._of(s.In(0, self._node, items, None, False))
