"""Fields of dates and times as Java's calendars define them, and their English texts.

Promises: weeks begin on Sunday and the first week of a year or month has at least one day, as in the United States.
Does not know: patterns."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence

MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October"),
    *("November", "December"),
)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
HALF_DAYS = ("AM", "PM")
DAY_PERIODS = ("midnight", "noon", "in the morning", "in the afternoon", "in the evening", "at night")
NARROW_DAY_PERIODS = ("mi", "n", *DAY_PERIODS[2:])
_ERA = (("AD",), ("Anno Domini",), ("A",))
_QUARTERS = (
    ("Q1", "Q2", "Q3", "Q4"),
    ("1st quarter", "2nd quarter", "3rd quarter", "4th quarter"),
    ("1", "2", "3", "4"),
)
_MODIFIED_JULIAN_DAY = datetime.date(1858, 11, 17).toordinal()


def get_texts(letter: str, count: int) -> Sequence[str]:
    """Return the texts of a field: short for 3 letters, full for 4, narrow for 5."""
    match letter:
        case "G":
            return _ERA[max(count - 3, 0)]
        case "Q" | "q":
            return _QUARTERS[count - 3]
    names = MONTHS if letter in "ML" else DAYS
    width = (3, None, 1)[count - 3]
    return [name[:width] for name in names]


def get_day_of_week(day: datetime.date) -> int:
    """Return the number of a weekday: 1 for Sunday."""
    return day.isoweekday() % 7 + 1


def get_day_of_year(day: datetime.date) -> int:
    """Return the number of a day in its year."""
    return day.toordinal() - datetime.date(day.year, 1, 1).toordinal() + 1


def get_week_of_month(day: datetime.date) -> int:
    """Return the number of the week in the month."""
    return _compute_week(day.day, get_day_of_week(day))


def get_week_based_year(day: datetime.date) -> int:
    """Return the year to which the week of a day belongs; for the last days of December it may be the next one."""
    return day.year + 1 if _is_in_next_year(day) else day.year


def get_week_of_year(day: datetime.date) -> int:
    """Return the number of the week in its week-based year."""
    return 1 if _is_in_next_year(day) else _compute_week(get_day_of_year(day), get_day_of_week(day))


def _compute_week(day_number: int, weekday: int) -> int:
    """Return the week of a day, where the week of day 1 is week 1."""
    return (day_number - weekday + 6) // 7 + 1


def _is_in_next_year(day: datetime.date) -> bool:
    return day.month == 12 and day.day - get_day_of_week(day) + 7 >= 32


def find_first_day_of_week(year: int, week: int) -> datetime.date:
    """Return the Sunday with which a week of a week-based year begins."""
    first = datetime.date(year, 1, 1)
    return first - datetime.timedelta(days=get_day_of_week(first) - 1) + datetime.timedelta(weeks=week - 1)


def get_nano_of_second(moment: datetime.datetime) -> int:
    """Return the nanoseconds of the second; a pandas.Timestamp has more digits than a datetime."""
    return moment.microsecond * 1000 + getattr(moment, "nanosecond", 0)


def _get_second_of_day(moment: datetime.datetime) -> int:
    return moment.hour * 3600 + moment.minute * 60 + moment.second


def _find_day_period(moment: datetime.datetime) -> int:
    """Return the index of the period in DAY_PERIODS."""
    if not moment.minute and moment.hour in (0, 12):
        return moment.hour // 12
    hour = moment.hour
    return 5 if hour < 6 or hour >= 21 else 2 if hour < 12 else 3 if hour < 18 else 4


#: The number of a field by its pattern letter.
NUMBERS: dict[str, Callable[[datetime.datetime], int]] = {
    "G": lambda _: 1,
    "u": lambda m: m.year,
    "y": lambda m: m.year,
    "Y": get_week_based_year,
    "M": lambda m: m.month,
    "L": lambda m: m.month,
    "Q": lambda m: (m.month + 2) // 3,
    "q": lambda m: (m.month + 2) // 3,
    "w": get_week_of_year,
    "W": get_week_of_month,
    "d": lambda m: m.day,
    "D": get_day_of_year,
    "g": lambda m: m.toordinal() - _MODIFIED_JULIAN_DAY,
    "E": lambda m: m.isoweekday(),
    "e": get_day_of_week,
    "c": get_day_of_week,
    "F": lambda m: (m.day - 1) % 7 + 1,
    "a": lambda m: m.hour // 12,
    "B": _find_day_period,
    "H": lambda m: m.hour,
    "k": lambda m: m.hour or 24,
    "h": lambda m: m.hour % 12 or 12,
    "K": lambda m: m.hour % 12,
    "m": lambda m: m.minute,
    "s": lambda m: m.second,
    "S": get_nano_of_second,
    "n": get_nano_of_second,
    "A": lambda m: _get_second_of_day(m) * 1000 + m.microsecond // 1000,
    "N": lambda m: _get_second_of_day(m) * 1_000_000_000 + get_nano_of_second(m),
}
