"""Conditions on whole columns have the same results as on single events, and so have patterns with such conditions."""

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
RECORD_TYPES: dict[str, tuple[Any, Callable[..., Any], dict[str, str]]] = {
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
    st.sampled_from(sorted(RECORD_TYPES)),
    st.lists(st.tuples(NUMBERS | st.none(), REALS | st.none(), TEXTS | st.none()), min_size=1, max_size=8),
    st.sampled_from(["n", "x", "text", "absent", "count"]),
    st.tuples(OPERATORS, VALUES) | st.tuples(st.just("in"), st.lists(VALUES, max_size=3).map(tuple)),
)
def test_a_column_has_the_results_of_its_values(
    record_type: str, records: list[tuple[Any, ...]], name: str, comparison: tuple[str, Any]
) -> None:
    type_info, create, field_names = RECORD_TYPES[record_type]
    rows = type_info.conform([create(*record) for record in records])
    name = field_names.get(name, name)
    op, value = comparison
    condition = Comparison(name, op, value).condition(lambda _: pytest.fail("nothing is named"))
    assert isinstance(condition, Predicate)
    for batch in (Batch(type_info, rows=rows), Batch(type_info, array=type_info.to_arrow(rows))):
        results = compare_column(batch, name, op, value)
        if results is not None:
            assert results.tolist() == [condition.function(row) for row in rows]


@pytest.mark.parametrize(("name", "op", "value"), [("n", "<", 3), ("x", ">=", 1), ("text", "in", ("a",))])
def test_simple_comparisons_are_evaluated_on_columns(name: str, op: str, value: Any) -> None:
    type_info, create, _ = RECORD_TYPES["row"]
    assert compare_column(Batch(type_info, rows=[create(1, 2.0, "a")]), name, op, value) is not None


EVENT = Types.ROW_NAMED(["id", "ts", "k", "v", "key"], [Types.LONG()] * 2 + [Types.STRING()] + [Types.LONG()] * 2)


def _hide_columns(pattern: Pattern) -> Pattern:
    """Return the same pattern, whose conditions are evaluated for single events only."""
    step: Pattern | None = pattern
    while step is not None:
        for condition in (step._where, step._until):
            if condition is not None:
                _hide_column(condition.condition)
        if step._group is not None:
            _hide_columns(step._group)
        step = step._previous
    return pattern


def _hide_column(condition: Any) -> None:
    if isinstance(condition, Predicate):
        object.__setattr__(condition, "column", None)
    for name in ("of", "one", "other"):
        if hasattr(condition, name):
            _hide_column(getattr(condition, name))


def _run(pattern: Pattern, events: list[Any], cut: int, *, restart: bool) -> tuple[dict[int, Any], dict[int, Any]]:
    """Return the matches and the timeouts of each key, in order."""

    def define(stream: DataStream) -> DataStream:
        matches = CEP.pattern(stream.key_by("key"), pattern)
        return matches.select(OVER, lambda match, time: (_list_ids(match), time), _list_ids)

    with OperatorHarness(define, input_types=[EVENT], side_outputs=[OVER]) as harness:
        for start in range(0, len(events), cut):
            part = events[start : start + cut]
            times = tuple(event["ts"] for event in part)
            harness.step({0: [Rows(tuple(part), times), Watermark(times[-1] - 2)]})
            if restart:
                harness.restore(harness.snapshot(), 1 + start % 2)
        harness.end_of_input()
        return _group_by_key(harness.values()), _group_by_key([record.value[0] for record in harness.side_output(OVER)])


def _list_ids(match: dict[str, list[Any]]) -> list[Any]:
    return [(name, event["key"], event["id"]) for name, events in match.items() for event in events]


def _group_by_key(matches: list[Any]) -> dict[int, list[Any]]:
    matches_by_key: dict[int, list[Any]] = {}
    for match in matches:
        matches_by_key.setdefault(match[0][1], []).append(match)
    return matches_by_key


def _create_any_pattern(seed: int) -> dict[str, Any]:
    data = cep_cases.create_case(seed)["pattern"]
    data.pop("skip", None)  # a skip strategy can fail the job
    return data if cep_running.is_valid(data) else _create_sequence(seed)


def _create_sequence(seed: int) -> dict[str, Any]:
    """Return a pattern of single steps, most of which have strict contiguity."""
    rng = random.Random(seed)
    steps: list[dict[str, Any]] = []
    for name in "abcd"[: rng.randint(2, 4)]:
        step = {"name": name, "where": {"field": "v", "op": rng.choice(("<", ">=", "!=")), "value": 2}}
        steps.append({**step, "contiguity": rng.choice(("strict", "strict", "relaxed"))} if steps else step)
    if rng.random() < 0.7:
        steps[-1]["within_ms"] = rng.choice((4, 9, 15))
    skip = {"skip": {"strategy": rng.choice(("SKIP_PAST_LAST_EVENT", "SKIP_TO_NEXT"))}}
    return {"steps": steps, **(skip if rng.random() < 0.6 else {})}


@pytest.mark.parametrize("pattern", [_create_any_pattern, _create_sequence])
@pytest.mark.parametrize("seed", range(30))
def test_columns_and_batch_sizes_do_not_change_matches(seed: int, pattern: Callable[[int], dict[str, Any]]) -> None:
    data = pattern(seed)
    rng = random.Random(seed)
    events = [
        Row(id=number, ts=number // 2 + 1, k=rng.choice("aabbc"), v=rng.randint(0, 4), key=rng.randint(0, 5))
        for number in range(120)
    ]
    expected = _run(Pattern.from_json(data), events, len(events), restart=False)
    assert _run(_hide_columns(Pattern.from_json(data)), events, len(events), restart=False) == expected
    assert _run(Pattern.from_json(data), events, 10, restart=True) == expected
    assert _run(_hide_columns(Pattern.from_json(data)), events, 7, restart=False) == expected


def test_conditions_on_columns_do_not_read_single_events() -> None:
    """Only events that may be accepted become Python values; a condition that is not evaluated cannot fail."""
    pattern = Pattern.begin("a").where(field("v") == 1).next("b").where(field("v") == 2)
    for step in pattern.plan().steps:
        assert isinstance(step.condition, Predicate)
        object.__setattr__(step.condition, "function", lambda _: pytest.fail("evaluated for a single event"))
    rows = [Row(id=n, ts=n, k="a", v=n % 4, key=7) for n in range(12)]
    matches, _ = _run(pattern, rows, 5, restart=True)
    assert matches[7] == [[("a", 7, n), ("b", 7, n + 1)] for n in (1, 5, 9)]
