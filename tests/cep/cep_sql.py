"""MATCH_RECOGNIZE clauses, and the patterns to which Flink's planner translates them.

The steps of SQL are strict. A quantifier is consecutive, and greedy unless a question mark follows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

EVENTS = [  # id, letter, price, seconds
    (0, "a", 10, 0),
    (1, "b", 12, 1),
    (2, "b", 11, 2),
    (3, "a", 9, 3),
    (4, "c", 7, 4),
    (5, "a", 15, 6),
    (6, "b", 14, 7),
    (7, "b", 13, 8),
    (8, "c", 13, 12),
    (9, "a", 14, 13),
    (10, "b", 14, 14),
    (11, "c", 2, 15),
    (12, "c", 3, 16),
]

Build = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class SqlCase:
    """A clause, its variables, and a function that creates the pattern, given `Pattern` and
    `AfterMatchSkipStrategy`."""

    name: str
    pattern: str
    define: str
    skip: str
    variables: str
    build: Build

    def sql(self, table: str) -> str:
        """Return the statement, which selects the first event, the last event and the number of events of each
        variable."""
        measures = ", ".join(
            f"FIRST({v}.id) AS {v}1, LAST({v}.id) AS {v}2, COUNT({v}.id) AS {v}n" for v in self.variables
        )
        names = ", ".join(f"{v}1, {v}2, {v}n" for v in self.variables)
        return (
            f"SELECT {names} FROM {table} MATCH_RECOGNIZE (ORDER BY at_time MEASURES {measures} ONE ROW PER MATCH "
            f"AFTER MATCH {self.skip} PATTERN {self.pattern} DEFINE {self.define})"
        )


def has_letter(letter: str) -> Callable[[Any], bool]:
    """Return the condition k = 'letter'."""
    return lambda event: bool(event["k"] == letter)


def is_falling(name: str) -> Callable[[Any, Any], bool]:
    """Return the condition LAST(name.price, 1) IS NULL OR name.price < LAST(name.price, 1)."""

    def falls(event: Any, ctx: Any) -> bool:
        before = ctx.get_events_for_pattern(name)
        return not before or bool(event["price"] < before[-1]["price"])

    return falls


LETTERS = "A AS A.k = 'a', B AS B.k = 'b', C AS C.k = 'c'"


def _abc(quantify: Callable[[Any], Any], skip: Callable[[Any], Any]) -> Build:
    """Return the pattern of A, B with a quantifier, and C."""

    def build(pattern: Any, strategy: Any) -> Any:
        up_to_b = pattern.begin("A", skip(strategy)).where(has_letter("a")).next("B").where(has_letter("b"))
        return quantify(up_to_b).next("C").where(has_letter("c"))

    return build


def _skip_past(strategy: Any) -> Any:
    return strategy.skip_past_last_event()


def _skip_to_next(strategy: Any) -> Any:
    return strategy.skip_to_next()


PAST, NEXT = "SKIP PAST LAST ROW", "SKIP TO NEXT ROW"

CASES = [
    SqlCase(
        "plus",
        "(A B+ C)",
        LETTERS,
        PAST,
        "ABC",
        _abc(lambda b: b.one_or_more().consecutive().greedy(), _skip_past),
    ),
    SqlCase(
        "star",
        "(A B* C)",
        LETTERS,
        PAST,
        "ABC",
        _abc(lambda b: b.one_or_more().consecutive().greedy().optional(), _skip_past),
    ),
    SqlCase("question", "(A B? C)", LETTERS, PAST, "ABC", _abc(lambda b: b.optional(), _skip_past)),
    SqlCase("exactly", "(A B{2} C)", LETTERS, PAST, "ABC", _abc(lambda b: b.times(2).consecutive(), _skip_past)),
    SqlCase(
        "between",
        "(A B{1,2} C)",
        LETTERS,
        NEXT,
        "ABC",
        _abc(lambda b: b.times(1, 2).consecutive().greedy(), _skip_to_next),
    ),
    SqlCase(
        "greedy falls",
        "(D+ U)",
        "D AS LAST(D.price, 1) IS NULL OR D.price < LAST(D.price, 1), U AS U.price >= LAST(D.price)",
        PAST,
        "DU",
        lambda p, s: (
            p.begin("D", s.skip_past_last_event())
            .where(is_falling("D"))
            .one_or_more()
            .consecutive()
            .greedy()
            .next("U")
            .where(lambda event, ctx: event["price"] >= ctx.get_events_for_pattern("D")[-1]["price"])
        ),
    ),
    SqlCase(
        "falls to next",
        "(D+ U)",
        "D AS LAST(D.price, 1) IS NULL OR D.price < LAST(D.price, 1), U AS U.price >= LAST(D.price)",
        NEXT,
        "DU",
        lambda p, s: (
            p.begin("D", s.skip_to_next())
            .where(is_falling("D"))
            .one_or_more()
            .consecutive()
            .greedy()
            .next("U")
            .where(lambda event, ctx: event["price"] >= ctx.get_events_for_pattern("D")[-1]["price"])
        ),
    ),
    SqlCase(
        "reluctant",
        "(A X*? C)",
        "A AS A.k = 'a', C AS C.k = 'c'",
        NEXT,
        "AXC",
        lambda p, s: (
            p.begin("A", s.skip_to_next())
            .where(has_letter("a"))
            .next("X")
            .one_or_more()
            .consecutive()
            .optional()
            .next("C")
            .where(has_letter("c"))
        ),
    ),
    SqlCase(
        "skip to first",
        "(A B+ C)",
        LETTERS,
        "SKIP TO FIRST C",
        "ABC",
        _abc(
            lambda b: b.one_or_more().consecutive().greedy(), lambda s: s.skip_to_first("C").throw_exception_on_miss()
        ),
    ),
    SqlCase(
        "skip to last",
        "(X B+ Y)",
        "B AS B.k = 'b'",
        "SKIP TO LAST B",
        "XBY",
        lambda p, s: (
            p.begin("X", s.skip_to_last("B").throw_exception_on_miss())
            .next("B")
            .where(has_letter("b"))
            .one_or_more()
            .consecutive()
            .greedy()
            .next("Y")
        ),
    ),
    SqlCase(
        "within",
        "(A X*? C) WITHIN INTERVAL '5' SECOND",
        "A AS A.k = 'a', C AS C.k = 'c'",
        NEXT,
        "AXC",
        lambda p, s: (
            p.begin("A", s.skip_to_next())
            .where(has_letter("a"))
            .next("X")
            .one_or_more()
            .consecutive()
            .optional()
            .next("C")
            .where(has_letter("c"))
            .within(5_000)
        ),
    ),
]
