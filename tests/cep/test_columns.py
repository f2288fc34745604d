"""Conditions over whole columns say what they say event by event, and so do patterns made of them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import cep_cases
import cep_running
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.cep import CEP, Pattern, field
from millstream.cep.columns import compare_column
from millstream.cep.expressions import Comparison
from millstream.common import Row, Types
from millstream.datastream import DataStream, OutputTag
from millstream.runtime.batch import Batch
from millstream.runtime.nfa.conditions import Predicate
from millstream.testing import OperatorHarness
from millstream.testing.ends import Rows, Watermark
from millstream.types.type_hints import find_type_of_hint

OVER = OutputTag("over")


class Named(NamedTuple):
    n: int
    x: float
    text: str


@dataclass(frozen=True)
class Data:
    n: int
    x: float
    text: str


FIELDS = [Types.LONG(), Types.DOUBLE(), Types.STRING()]
KINDS: dict[str, tuple[Any, Callable[..., Any], dict[str, str]]] = {
    "row": (Types.ROW_NAMED(["n", "x", "text"], FIELDS), Row, {}),
    "tuple": (Types.TUPLE(FIELDS), lambda *values: values, {"n": "0", "x": "1", "text": "2"}),
    "named tuple": (find_type_of_hint(Named), Named, {}),
    "dataclass": (find_type_of_hint(Data), Data, {}),
}
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)
REALS = st.floats() | st.sampled_from([0.0, -0.0, 1.0, 2.5])
TEXTS = st.sampled_from(["", "a", "b", "ä", "\U0001f600", "\uffff"])
OPERATORS = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
VALUES = NUMBERS | st.integers() | REALS | TEXTS | st.booleans() | st.none()


@given(
    st.sampled_from(sorted(KINDS)),
    st.lists(st.tuples(NUMBERS | st.none(), REALS | st.none(), TEXTS | st.none()), min_size=1, max_size=8),
    st.sampled_from(["n", "x", "text", "absent", "count"]),
    st.tuples(OPERATORS, VALUES) | st.tuples(st.just("in"), st.lists(VALUES, max_size=3).map(tuple)),
)
def test_a_column_is_compared_as_its_values_are(
    kind: str, records: list[tuple[Any, ...]], name: str, compared: tuple[str, Any]
) -> None:
    of, make, spelling = KINDS[kind]
    rows = of.conform([make(*record) for record in records])
    name = spelling.get(name, name)
    op, value = compared
    condition = Comparison(name, op, value).condition(lambda _: pytest.fail("nothing is named"))
    assert isinstance(condition, Predicate)
    for batch in (Batch(of, rows=rows), Batch(of, array=of.to_arrow(rows))):
        found = compare_column(batch, name, op, value)
        if found is not None:
            assert found.tolist() == [condition.function(row) for row in rows]


@pytest.mark.parametrize(("name", "op", "value"), [("n", "<", 3), ("x", ">=", 1), ("text", "in", ("a",))])
def test_plain_comparisons_do_have_columns(name: str, op: str, value: Any) -> None:
    of, make, _ = KINDS["row"]
    assert compare_column(Batch(of, rows=[make(1, 2.0, "a")]), name, op, value) is not None


EVENT = Types.ROW_NAMED(["id", "ts", "k", "v", "key"], [Types.LONG()] * 2 + [Types.STRING()] + [Types.LONG()] * 2)


def _asked(pattern: Pattern) -> Pattern:
    """The same pattern, with its tests hidden from columns."""
    before: Pattern | None = pattern
    while before is not None:
        for each in (before._where, before._until):
            if each is not None:
                _hide(each.condition)
        if before._group is not None:
            _asked(before._group)
        before = before._previous
    return pattern


def _hide(condition: Any) -> None:
    if isinstance(condition, Predicate):
        object.__setattr__(condition, "column", None)
    for name in ("of", "one", "other"):
        if hasattr(condition, name):
            _hide(getattr(condition, name))


def _results(pattern: Pattern, events: list[Any], cut: int, *, restart: bool) -> tuple[dict[int, Any], dict[int, Any]]:
    """Matches and timeouts of each key, in order."""

    def define(stream: DataStream) -> DataStream:
        found = CEP.pattern(stream.key_by("key"), pattern)
        return found.select(OVER, lambda match, time: (_ids(match), time), _ids)

    with OperatorHarness(define, input_types=[EVENT], side_outputs=[OVER]) as harness:
        for at in range(0, len(events), cut):
            part = events[at : at + cut]
            times = tuple(event["ts"] for event in part)
            harness.step({0: [Rows(tuple(part), times), Watermark(times[-1] - 2)]})
            if restart:
                harness.restore(harness.snapshot(), 1 + at % 2)
        harness.end_of_input()
        return _by_key(harness.values()), _by_key([record.value[0] for record in harness.side_output(OVER)])


def _ids(match: dict[str, list[Any]]) -> list[Any]:
    return [(name, event["key"], event["id"]) for name, events in match.items() for event in events]


def _by_key(matches: list[Any]) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for match in matches:
        found.setdefault(match[0][1], []).append(match)
    return found


def _any_pattern(seed: int) -> dict[str, Any]:
    data = cep_cases.case(seed)["pattern"]
    data.pop("skip", None)  # a skip that misses fails
    return data if cep_running.makes_sense(data) else _one_after_the_other(seed)


def _one_after_the_other(seed: int) -> dict[str, Any]:
    """Single steps, each directly after the one before more often than not."""
    chance = random.Random(seed)
    steps: list[dict[str, Any]] = []
    for name in "abcd"[: chance.randint(2, 4)]:
        step = {"name": name, "where": {"field": "v", "op": chance.choice(("<", ">=", "!=")), "value": 2}}
        steps.append({**step, "contiguity": chance.choice(("strict", "strict", "relaxed"))} if steps else step)
    if chance.random() < 0.7:
        steps[-1]["within_ms"] = chance.choice((4, 9, 15))
    skip = {"skip": {"strategy": chance.choice(("SKIP_PAST_LAST_EVENT", "SKIP_TO_NEXT"))}}
    return {"steps": steps, **(skip if chance.random() < 0.6 else {})}


@pytest.mark.parametrize("pattern", [_any_pattern, _one_after_the_other])
@pytest.mark.parametrize("seed", range(30))
def test_columns_and_cuts_do_not_show_in_matches(seed: int, pattern: Callable[[int], dict[str, Any]]) -> None:
    data = pattern(seed)
    chance = random.Random(seed)
    events = [
        Row(id=number, ts=number // 2 + 1, k=chance.choice("aabbc"), v=chance.randint(0, 4), key=chance.randint(0, 5))
        for number in range(120)
    ]
    whole = _results(Pattern.from_json(data), events, len(events), restart=False)
    assert _results(_asked(Pattern.from_json(data)), events, len(events), restart=False) == whole
    assert _results(Pattern.from_json(data), events, 10, restart=True) == whole
    assert _results(_asked(Pattern.from_json(data)), events, 7, restart=False) == whole


def test_a_pattern_of_columns_asks_no_event() -> None:
    """Only what may be taken becomes a Python value; a condition that is never asked cannot fail."""
    pattern = Pattern.begin("a").where(field("v") == 1).next("b").where(field("v") == 2)
    for step in pattern.plan().steps:
        assert isinstance(step.condition, Predicate)
        object.__setattr__(step.condition, "function", lambda _: pytest.fail("an event was asked"))
    rows = [Row(id=n, ts=n, k="a", v=n % 4, key=7) for n in range(12)]
    matches, _ = _results(pattern, rows, 5, restart=True)
    assert matches[7] == [[("a", 7, n), ("b", 7, n + 1)] for n in (1, 5, 9)]
