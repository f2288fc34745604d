"""Methods of expressions for times, intervals and group windows.

Promises: PyFlink's names. An interval is created from a number of units, as in lit(10).minutes.
Does not know: clocks."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from millstream.errors import InvalidArgumentType
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.table.expression.symbols import TimeIntervalUnit
from millstream.table.expression.terms import Term, symbol

if TYPE_CHECKING:
    from millstream.table.expression.expression import Expression


def interval_property(unit: str, factor: int, doc: str) -> property:
    """Return a property that converts an integer literal to an interval."""

    def to_interval(self: Term) -> Expression:
        value = self._node
        if not isinstance(value, s.Literal) or not isinstance(value.value, int):
            msg = f"an interval needs an integer, as in lit(10).{unit.lower()}s"
            raise InvalidArgumentType(msg)
        amount = value.value * factor
        return self._of(s.IntervalLiteral(0, str(abs(amount)), unit, None, amount < 0))

    return property(to_interval, doc=doc)


class Times(Term):
    """Conversions of times, intervals, and the properties of group windows."""

    __slots__ = ()

    to_date = property(lambda self: self._of(s.Cast(0, self._node, t.DATE)), doc="The value converted to DATE.")
    to_time = property(lambda self: self._of(s.Cast(0, self._node, t.TIME)), doc="The value converted to TIME.")
    to_timestamp = property(
        lambda self: self._of(s.Cast(0, self._node, t.TimestampType(3))), doc="The value converted to TIMESTAMP(3)."
    )
    year = interval_property("YEAR", 1, "An interval of this number of years.")
    years = interval_property("YEAR", 1, "An interval of this number of years.")
    quarter = interval_property("MONTH", 3, "An interval of this number of quarters.")
    quarters = interval_property("MONTH", 3, "An interval of this number of quarters.")
    month = interval_property("MONTH", 1, "An interval of this number of months.")
    months = interval_property("MONTH", 1, "An interval of this number of months.")
    week = interval_property("DAY", 7, "An interval of this number of weeks.")
    weeks = interval_property("DAY", 7, "An interval of this number of weeks.")
    day = interval_property("DAY", 1, "An interval of this number of days.")
    days = interval_property("DAY", 1, "An interval of this number of days.")
    hour = interval_property("HOUR", 1, "An interval of this number of hours.")
    hours = interval_property("HOUR", 1, "An interval of this number of hours.")
    minute = interval_property("MINUTE", 1, "An interval of this number of minutes.")
    minutes = interval_property("MINUTE", 1, "An interval of this number of minutes.")
    second = interval_property("SECOND", 1, "An interval of this number of seconds.")
    seconds = interval_property("SECOND", 1, "An interval of this number of seconds.")

    @property
    def millis(self) -> Expression:
        """An interval of this number of milliseconds."""
        value = self._node
        assert isinstance(value, s.Literal)
        return self._of(s.IntervalLiteral(0, str(Decimal(abs(value.value)) / 1000), "SECOND", None, value.value < 0))

    milli = millis

    def extract(self, time_interval_unit: TimeIntervalUnit) -> Expression:
        """Return a field of a time or an interval, such as its hour."""
        return self._call("EXTRACT", symbol(time_interval_unit.value), self)

    @property
    def rowtime(self) -> Expression:
        """The event-time attribute of a group window, or the column as event-time attribute of a stream."""
        return self._of(s.FieldAccess(0, self._node, "rowtime"))

    @property
    def proctime(self) -> Expression:
        """The processing-time attribute of a group window."""
        return self._of(s.FieldAccess(0, self._node, "proctime"))

    @property
    def start(self) -> Expression:
        """The start of a group window."""
        return self._of(s.FieldAccess(0, self._node, "start"))

    @property
    def end(self) -> Expression:
        """The end of a group window, exclusive."""
        return self._of(s.FieldAccess(0, self._node, "end"))
