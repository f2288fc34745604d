"""Planning of OVER: which calls share an operator, and what a stream cannot compute."""

from __future__ import annotations

from dataclasses import replace

import pytest
from planning_inputs import COUNT, PROCTIME, ROWTIME, FakePlanner, Table, table

from millstream.sql.errors import SqlNotSupported
from millstream.sql.expressions.nodes import AggregateCall
from millstream.sql.logical import nodes as l
from millstream.sql.operators.calc import CalcSpec
from millstream.sql.operators.over.changing_over import ChangingOverSpec
from millstream.sql.operators.over.over_aggregate import OverSpec
from millstream.sql.physical.nodes import Operation, distribute_by_hash
from millstream.sql.physical.planning.over import plan_over
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode

ROWS = table(a=t.INT, b=t.INT, ts=ROWTIME, p=PROCTIME)
UPDATES = Table(ROWS.schema, ChangelogMode.RETRACT)
BY_TIME = ((2, True, True),)
RUNNING = l.OverCall(COUNT, (0,), BY_TIME, True, None, 0)
SUM_B = replace(RUNNING, call=AggregateCall("SUM", (1,), t.BIGINT, (t.INT,)))
BY_B = replace(RUNNING, partition=(1,))


def over(*calls: l.OverCall, source: Table = ROWS) -> l.Over:
    names = [*source.schema.names, *(f"o{i}" for i in range(len(calls)))]
    types = [*source.schema.types, *(call.call.type for call in calls)]
    return l.Over(t.row_of(names, types, null=False), source, calls)


def chain(operation: Operation) -> list[Operation]:
    """Return the operations, the table first."""
    return [*(chain(operation.inputs[0]) if operation.inputs else []), operation]


def test_calls_of_one_partition_and_frame_share_an_operator() -> None:
    _, operation = chain(plan_over(FakePlanner(ttl=3), over(RUNNING, SUM_B)))
    assert isinstance(operation.spec, OverSpec)
    assert (operation.spec.calls, operation.spec.ttl) == ((RUNNING, SUM_B), 3)
    assert operation.distributions == (distribute_by_hash((0,)),)
    assert operation.detail == "partitionBy=[a], orderBy=[ts]"


def test_each_partition_has_an_operator_and_results_are_in_the_order_of_the_query() -> None:
    _, first, second, calc = chain(plan_over(FakePlanner(), over(RUNNING, BY_B, SUM_B)))
    assert (first.spec.calls, second.spec.calls) == ((RUNNING, SUM_B), (BY_B,))
    assert isinstance(calc.spec, CalcSpec)
    assert calc.spec.exprs is not None
    assert [expr.index for expr in calc.spec.exprs] == [0, 1, 2, 3, 4, 6, 5]  # type: ignore[attr-defined]


def test_operators_in_the_order_of_the_query_need_no_projection() -> None:
    assert [operation.name for operation in chain(plan_over(FakePlanner(), over(RUNNING, BY_B)))] == [
        "Table",
        "OverAggregate",
        "OverAggregate",
    ]


def test_processing_time_has_no_time_column() -> None:
    by_arrival = replace(RUNNING, order=((3, True, True),))
    assert plan_over(FakePlanner(), over(by_arrival)).spec.time is None
    assert plan_over(FakePlanner(), over(RUNNING)).spec.time == 2


@pytest.mark.parametrize("order", [((1, False, True),), ((2, False, True),), ((2, True, True), (1, True, True)), ()])
def test_a_stream_is_ordered_by_one_time_attribute(order: tuple[tuple[int, bool, bool], ...]) -> None:
    with pytest.raises(SqlNotSupported, match="ordered by one time attribute, ascending"):
        plan_over(FakePlanner(), over(replace(RUNNING, order=order)))


def test_a_function_of_later_rows_is_refused_on_a_stream() -> None:
    lead = replace(RUNNING, call=AggregateCall("LEAD", (1,), t.INT, (t.INT,)))
    with pytest.raises(SqlNotSupported, match="LEAD needs rows after the current one"):
        plan_over(FakePlanner(), over(lead))


@pytest.mark.parametrize("function", ["SUM", "ROW_NUMBER", "RANK", "DENSE_RANK"])
def test_a_stream_can_be_ordered_by_one_other_column_and_emits_corrections(function: str) -> None:
    args = (1,) if function == "SUM" else ()
    call = replace(
        RUNNING, call=AggregateCall(function, args, t.BIGINT, (t.INT,) * len(args)), order=((1, True, True),)
    )
    operation = plan_over(FakePlanner(), over(call))
    assert (type(operation.spec), operation.mode) == (ChangingOverSpec, ChangelogMode.RETRACT)


def test_updating_input_is_aggregated_in_any_order() -> None:
    operation = plan_over(FakePlanner(), over(replace(RUNNING, order=((1, False, True),)), source=UPDATES))
    assert (type(operation.spec), operation.mode) == (ChangingOverSpec, ChangelogMode.RETRACT)
    assert operation.detail == "partitionBy=[a], orderBy=[b DESC]"


@pytest.mark.parametrize(
    "call",
    [
        replace(RUNNING, call=AggregateCall("LAG", (1,), t.INT, (t.INT,))),
        replace(RUNNING, rows=False, lower=-1000),
    ],
    ids=["LAG", "a range of time"],
)
def test_other_calls_of_updating_input_are_refused(call: l.OverCall) -> None:
    with pytest.raises(SqlNotSupported, match="over updating input"):
        plan_over(FakePlanner(), over(call, source=UPDATES))
