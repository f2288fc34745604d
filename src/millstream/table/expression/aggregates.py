"""Aggregates as methods of expressions.

Promises: PyFlink's names. An aggregate can be DISTINCT, and can be computed over an over window.
Does not know: windows and groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.errors import InvalidArgumentType
from millstream.sql.syntax import tree as s
from millstream.table.expression.terms import Term, function_property

if TYPE_CHECKING:
    from millstream.table.expression.expression import Expression


class Aggregates(Term):
    """Aggregate functions of the values of several rows."""

    __slots__ = ()

    sum = function_property("SUM", "The sum; NULL if there are no values.")
    sum0 = function_property("$SUM0", "The sum; 0 if there are no values.")
    min = function_property("MIN", "The least value.")
    max = function_property("MAX", "The greatest value.")
    count = function_property("COUNT", "The number of values that are not NULL.")
    avg = function_property("AVG", "The arithmetic mean.")
    first_value = function_property("FIRST_VALUE", "The first value.")
    last_value = function_property("LAST_VALUE", "The last value.")
    stddev_pop = function_property("STDDEV_POP", "The population standard deviation.")
    stddev_samp = function_property("STDDEV_SAMP", "The sample standard deviation.")
    var_pop = function_property("VAR_POP", "The population variance.")
    var_samp = function_property("VAR_SAMP", "The sample variance.")
    collect = function_property("COLLECT", "A multiset of the values.")
    array_agg = function_property("ARRAY_AGG", "An array of the values.")

    def list_agg(self, separator: str | None = None) -> Expression:
        """Concatenate the strings of all rows.

        Args:
            separator: The text between two strings; a comma by default.

        """
        return self._call("LISTAGG", self) if separator is None else self._call("LISTAGG", self, separator)

    def percentile(self, percentage: Any, frequency: Any = None) -> Expression:
        """Return a percentile of the values, interpolated linearly.

        Args:
            percentage: A number from 0 to 1, or an array of such numbers.
            frequency: How often each value counts; once by default.

        """
        return self._call("PERCENTILE", self, percentage, *([] if frequency is None else [frequency]))

    @property
    def distinct(self) -> Expression:
        """Aggregate each distinct value once, as in `col("a").count.distinct`."""
        call = self._node
        if not isinstance(call, s.Call):
            msg = "only an aggregate can be distinct, as in col('a').count.distinct"
            raise InvalidArgumentType(msg)
        return self._of(s.Call(call.at, call.name, call.args, True, path=call.path, user=call.user))

    def over(self, alias: Any) -> Expression:
        """Compute the aggregate over an over window.

        Args:
            alias: The alias of a window of `Table.over_window`.

        """
        call = self._node
        name = alias._node.parts[-1] if isinstance(alias, Term) and isinstance(alias._node, s.Name) else str(alias)
        assert isinstance(call, s.Call)
        spec = s.WindowSpec(0, name)
        return self._of(
            s.Call(
                call.at, call.name, call.args, call.distinct, over=spec, path=call.path, star=call.star, user=call.user
            )
        )
