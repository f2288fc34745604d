"""Methods that make one value of many.

Promises: PyFlink's names; an aggregate can be distinct, and go over a window.
Does not know: windows and groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.errors import UserError
from millstream.sql.syntax import tree as s
from millstream.table.expression.terms import Term, applied

if TYPE_CHECKING:
    from millstream.table.expression.expression import Expression


class Aggregates(Term):
    """What can be made of the values of many rows."""

    __slots__ = ()

    sum = applied("SUM", "The sum; NULL of nothing.")
    sum0 = applied("$SUM0", "The sum; 0 of nothing.")
    min = applied("MIN", "The least value.")
    max = applied("MAX", "The greatest value.")
    count = applied("COUNT", "How many are not NULL.")
    avg = applied("AVG", "The mean.")
    first_value = applied("FIRST_VALUE", "The first value.")
    last_value = applied("LAST_VALUE", "The last value.")
    stddev_pop = applied("STDDEV_POP", "The standard deviation.")
    stddev_samp = applied("STDDEV_SAMP", "The standard deviation of a sample.")
    var_pop = applied("VAR_POP", "The variance.")
    var_samp = applied("VAR_SAMP", "The variance of a sample.")
    collect = applied("COLLECT", "A multiset of the values.")
    array_agg = applied("ARRAY_AGG", "An array of the values.")

    def list_agg(self, separator: str | None = None) -> Expression:
        """The strings with a separator between them."""
        return self._call("LISTAGG", self) if separator is None else self._call("LISTAGG", self, separator)

    def percentile(self, percentage: Any, frequency: Any = None) -> Expression:
        """A percentile of the numbers."""
        return self._call("PERCENTILE", self, percentage, *([] if frequency is None else [frequency]))

    @property
    def distinct(self) -> Expression:
        """An aggregate of each value once."""
        call = self._node
        if not isinstance(call, s.Call):
            msg = "only an aggregate can be distinct, as in col('a').count.distinct"
            raise UserError(msg)
        return self._of(s.Call(call.at, call.name, call.args, True, path=call.path, user=call.user))

    def over(self, alias: Any) -> Expression:
        """An aggregate over a window that over_window named."""
        call = self._node
        name = alias._node.parts[-1] if isinstance(alias, Term) and isinstance(alias._node, s.Name) else str(alias)
        assert isinstance(call, s.Call)
        spec = s.WindowSpec(0, name)
        return self._of(
            s.Call(
                call.at, call.name, call.args, call.distinct, over=spec, path=call.path, star=call.star, user=call.user
            )
        )
