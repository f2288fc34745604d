"""Methods of moments, intervals and group windows.

Promises: PyFlink's names; an interval is written as a number of units, as in lit(10).minutes.
Does not know: clocks."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from millstream.errors import UserError
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.table.expression.terms import Term, symbol
from millstream.table.expression.words import TimeIntervalUnit

if TYPE_CHECKING:
    from millstream.table.expression.expression import Expression


def interval(unit: str, factor: int, doc: str) -> property:
    """A property that turns a whole number into an interval."""

    def make(self: Term) -> Expression:
        value = self._node
        if not isinstance(value, s.Literal) or not isinstance(value.value, int):
            msg = f"an interval needs a whole number, as in lit(10).{unit.lower()}s"
            raise UserError(msg)
        amount = value.value * factor
        return self._of(s.IntervalLiteral(0, str(abs(amount)), unit, None, amount < 0))

    return property(make, doc=doc)


class Times(Term):
    """What can be made of a moment, or of a number that becomes an interval."""

    __slots__ = ()

    to_date = property(lambda self: self._of(s.Cast(0, self._node, t.DATE)), doc="As a date.")
    to_time = property(lambda self: self._of(s.Cast(0, self._node, t.TIME)), doc="As a time of day.")
    to_timestamp = property(lambda self: self._of(s.Cast(0, self._node, t.TimestampType(3))), doc="As a timestamp.")
    year = interval("YEAR", 1, "Years.")
    years = interval("YEAR", 1, "Years.")
    quarter = interval("MONTH", 3, "Quarters.")
    quarters = interval("MONTH", 3, "Quarters.")
    month = interval("MONTH", 1, "Months.")
    months = interval("MONTH", 1, "Months.")
    week = interval("DAY", 7, "Weeks.")
    weeks = interval("DAY", 7, "Weeks.")
    day = interval("DAY", 1, "Days.")
    days = interval("DAY", 1, "Days.")
    hour = interval("HOUR", 1, "Hours.")
    hours = interval("HOUR", 1, "Hours.")
    minute = interval("MINUTE", 1, "Minutes.")
    minutes = interval("MINUTE", 1, "Minutes.")
    second = interval("SECOND", 1, "Seconds.")
    seconds = interval("SECOND", 1, "Seconds.")

    @property
    def millis(self) -> Expression:
        """Milliseconds."""
        value = self._node
        assert isinstance(value, s.Literal)
        return self._of(s.IntervalLiteral(0, str(Decimal(abs(value.value)) / 1000), "SECOND", None, value.value < 0))

    milli = millis

    def extract(self, time_interval_unit: TimeIntervalUnit) -> Expression:
        """A part of a moment."""
        return self._call("EXTRACT", symbol(time_interval_unit.value), self)

    @property
    def rowtime(self) -> Expression:
        """The time attribute of a group window, or the column as event time."""
        return self._of(s.FieldAccess(0, self._node, "rowtime"))

    @property
    def proctime(self) -> Expression:
        """The processing time of a group window."""
        return self._of(s.FieldAccess(0, self._node, "proctime"))

    @property
    def start(self) -> Expression:
        """Where a group window starts."""
        return self._of(s.FieldAccess(0, self._node, "start"))

    @property
    def end(self) -> Expression:
        """Where a group window ends."""
        return self._of(s.FieldAccess(0, self._node, "end"))
