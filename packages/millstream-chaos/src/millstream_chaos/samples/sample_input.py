"""The input records of the sample programs.

Promises: plain tuples, a function of their arguments.
Does not know: programs, engines. The computation of the expected output must not depend on the engine."""

from __future__ import annotations

Event = tuple[str, int, int]  # key, timestamp, value

ONE_SPLIT = 40  # records
RULES = (("half", 2), ("third", 4), ("third", 3), ("gone", 5), ("gone", 0), ("seventh", 7))
FAR = 1 << 60


def events(count: int, keys: int = 5, step: int = 7, shake: int = 20, times: int = 1) -> tuple[Event, ...]:
    """Return `count * times` records, out of order by less than `shake` ms."""
    return tuple((f"k{i * 7 % keys}", 100 + i * step + (i * 13 % shake), i) for i in range(count * times))


def many_splits(times: int = 1) -> tuple[tuple[Event, ...], ...]:
    """Return splits that end at different times; the slow ones are far behind in event time."""
    return (
        events(24, times=times),
        events(9, step=3, times=times),
        events(30, step=11, times=times),
        events(16, keys=3, step=5, times=times),
    )


def ends_of_time() -> tuple[tuple[Event, ...], ...]:
    """Return records with timestamps far in the past and far in the future."""
    first = [("a", -FAR + number, number) for number in range(20)] + [("b", number, number) for number in range(20)]
    second = [("a", number * 7, number) for number in range(30)] + [("c", FAR + number, number) for number in range(20)]
    return tuple(first), tuple(second)


def numbers(count: int) -> tuple[tuple[int, ...], ...]:
    """Return the numbers from 0 on, in three splits of different lengths."""
    half = count // 2
    return tuple(range(half)), tuple(range(half, count, 2)), tuple(range(half + 1, count, 2))
