"""Planning of MATCH_RECOGNIZE: the steps of the pattern, timestamps and keys."""

from __future__ import annotations

from dataclasses import replace

import pytest
from planning_inputs import ROWTIME, FakePlanner, Table, is_greater, table

from millstream.runtime.nfa.conditions import ALWAYS
from millstream.runtime.nfa.pattern import Contiguity, Skip, SkipKind, Step, Times
from millstream.sql.errors import SqlNotSupported
from millstream.sql.expressions.nodes import Lit, Ref
from millstream.sql.logical import nodes as l
from millstream.sql.logical.patterns import MatchDescription, PatternRef
from millstream.sql.operators.pattern.stamp import StampSpec
from millstream.sql.physical.nodes import SINGLE, Operation, distribute_by_hash
from millstream.sql.physical.planning.match import plan_match
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode

ROWS = table(a=t.INT, b=t.INT, ts=ROWTIME)
LARGE = (is_greater(Ref(t.INT, 0), Lit(t.INT, 5)), (PatternRef("B", expr=Ref(t.INT, 1)),))
A_THEN_B = MatchDescription(
    steps=(("A", 1, 1, True), ("B", 1, 1, True)),
    define=(("B", *LARGE),),
    measures=((Ref(t.INT, 0), (PatternRef("A", expr=Ref(t.INT, 1)),)),),
    partition=(0,),
    time=2,
    skip=Skip(SkipKind.SKIP_PAST_LAST_EVENT),
    within=1000,
    subsets=(),
    processing=False,
)


def match(description: MatchDescription = A_THEN_B, source: Table = ROWS) -> Operation:
    schema = t.row_of(["a", "first"], [t.INT, t.INT], null=False)
    return plan_match(FakePlanner(), l.Match(schema, source, description))


def steps(*quantified: tuple[str, int, int | None, bool]) -> tuple[Step, ...]:
    planned: tuple[Step, ...] = match(replace(A_THEN_B, steps=quantified)).spec.plan.steps
    return planned


def test_event_time_becomes_the_timestamp_of_rows_before_they_are_matched() -> None:
    operation = match()
    assert (operation.name, operation.detail) == ("Match", "pattern=[A B]")
    (stamped,) = operation.inputs
    assert isinstance(stamped.spec, StampSpec)
    assert not operation.spec.processing_time


def test_processing_time_needs_no_timestamps() -> None:
    operation = match(replace(A_THEN_B, processing=True))
    assert operation.inputs[0].name == "Table"
    assert operation.spec.processing_time


def test_rows_are_partitioned_and_without_partition_are_in_one_subtask() -> None:
    assert match().distributions == (distribute_by_hash((0,)),)
    assert match(replace(A_THEN_B, partition=())).distributions == (SINGLE,)


def test_updating_input_is_refused() -> None:
    with pytest.raises(SqlNotSupported, match="must be insert-only"):
        match(source=Table(ROWS.schema, ChangelogMode.RETRACT))


def test_steps_are_strictly_contiguous_and_defined_ones_have_a_condition() -> None:
    first, second = steps(("A", 1, 1, True), ("B", 1, 1, True))
    assert (first.contiguity, second.contiguity) == (Contiguity.STRICT, Contiguity.STRICT)
    assert first.condition is ALWAYS
    assert second.condition is not ALWAYS


@pytest.mark.parametrize(
    ("least", "most", "times", "optional"),
    [
        (1, 1, None, False),
        (0, 1, None, True),
        (0, None, Times(1, None), True),
        (1, None, Times(1, None), False),
        (2, 2, Times(2, 2), False),
        (0, 3, Times(1, 3), True),
    ],
    ids=["A", "A?", "A*", "A+", "A{2}", "A{0,3}"],
)
def test_quantifiers(least: int, most: int | None, times: Times | None, optional: bool) -> None:
    step, _ = steps(("A", least, most, True), ("B", 1, 1, True))
    assert (step.times, step.optional) == (times, optional)


def test_only_loops_are_greedy() -> None:
    loop, single = steps(("A", 1, None, True), ("B", 1, 1, True))
    assert (loop.greedy, single.greedy) == (True, False)
    assert steps(("A", 1, None, False), ("B", 1, 1, True))[0].greedy is False


def test_the_time_limit_is_that_of_the_last_step() -> None:
    assert [step.within for step in steps(("A", 1, 1, True), ("B", 1, 1, True))] == [None, 1000]
