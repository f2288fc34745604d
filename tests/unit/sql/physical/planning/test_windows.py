"""Planning of window aggregates: by slices, by sessions, or by rows that are assigned to their windows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from planning_inputs import COUNT, ROWTIME, FakePlanner, Table, is_greater, table, window_table

from millstream.sql.expressions.nodes import AggregateCall, Apply, Expression, Lit, Ref
from millstream.sql.logical import nodes as l
from millstream.sql.logical.window_columns import find_window_edges
from millstream.sql.operators.window.local_sessions import LocalSessionAggregateSpec
from millstream.sql.operators.window.local_windows import LocalWindowAggregateSpec
from millstream.sql.operators.window.session_aggregate import SessionAggregateSpec
from millstream.sql.operators.window.sliced_windows import SlicedWindowAggregateSpec
from millstream.sql.operators.window.window_aggregate import WindowAggregateSpec
from millstream.sql.physical.nodes import Operation, distribute_by_hash
from millstream.sql.physical.planning.windows import plan_window_aggregate
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode

ROWS = table(a=t.INT, b=t.INT, ts=ROWTIME)
TUMBLE = l.WindowSpec("TUMBLE", 2, 1000)
SESSION = l.WindowSpec("SESSION", 2, 1000, partition=(0,))
SUM_B = AggregateCall("SUM", (1,), t.BIGINT, (t.INT,))


def aggregate(
    source: l.Plan, keys: tuple[int, ...] = (0, 3, 4), calls: tuple[AggregateCall, ...] = (SUM_B,)
) -> l.Aggregate:
    names = [*(source.schema.names[i] for i in keys), *(f"c{i}" for i in range(len(calls)))]
    types = [*(source.schema.types[i] for i in keys), *(call.type for call in calls)]
    return l.Aggregate(t.row_of(names, types, null=False), source, keys, calls)


def plan(node: l.Aggregate, **settings: object) -> Operation:
    edges = find_window_edges(node.input)
    end = next(i for i in node.keys if i in edges and edges[i][0] == "end")
    others = tuple(i for i in node.keys if i not in edges)
    return plan_window_aggregate(FakePlanner(**settings), node, end, edges[end], others, "detail")


def windows(source: l.Plan = ROWS, window: l.WindowSpec = TUMBLE) -> l.WindowTable:
    return window_table(source, window)


def test_tumbling_windows_are_aggregated_by_slices_before_and_after_the_exchange() -> None:
    operation = plan(aggregate(windows()))
    assert (operation.name, type(operation.spec)) == ("GlobalWindowAggregate", SlicedWindowAggregateSpec)
    assert operation.spec.partial
    assert operation.distributions == (distribute_by_hash((0,)),)
    (local,) = operation.inputs
    assert type(local.spec) is LocalWindowAggregateSpec
    assert local.inputs[0].name == "Table", "rows are not assigned to windows"


def test_one_phase_has_no_local_aggregate() -> None:
    operation = plan(aggregate(windows()), two_phase=False)
    assert (operation.name, operation.inputs[0].name) == ("WindowAggregate", "Table")
    assert not operation.spec.partial


@pytest.mark.parametrize(
    ("window", "is_sliced"),
    [
        (l.WindowSpec("HOP", 2, 1000, slide=500), True),
        (l.WindowSpec("HOP", 2, 1000, slide=300), False),
        (l.WindowSpec("CUMULATE", 2, 1000, slide=250), True),
    ],
)
def test_windows_of_whole_slices_are_sliced(window: l.WindowSpec, is_sliced: bool) -> None:
    spec = plan(aggregate(windows(window=window))).spec
    assert type(spec) is (SlicedWindowAggregateSpec if is_sliced else WindowAggregateSpec)


def test_updating_input_is_assigned_to_windows() -> None:
    spec = plan(aggregate(windows(Table(ROWS.schema, ChangelogMode.RETRACT)))).spec
    assert (type(spec), spec.retracts) == (WindowAggregateSpec, True)


def test_a_batch_is_not_sliced() -> None:
    assert type(plan(aggregate(windows()), batch=True).spec) is WindowAggregateSpec


def test_a_distinct_call_is_not_sliced() -> None:
    spec = plan(aggregate(windows(), calls=(replace(SUM_B, distinct=True),))).spec
    assert type(spec) is WindowAggregateSpec


def test_local_time_is_sliced_in_utc_only() -> None:
    rows = table(a=t.INT, b=t.INT, ts=t.LocalZonedTimestampType(3, attribute=t.ROWTIME))
    assert type(plan(aggregate(windows(rows))).spec) is SlicedWindowAggregateSpec
    assert type(plan(aggregate(windows(rows)), zone="Europe/Berlin").spec) is WindowAggregateSpec


def test_a_call_of_a_window_column_is_not_sliced() -> None:
    latest = AggregateCall("MAX", (4,), t.TimestampType(3), (t.TimestampType(3),))
    assert type(plan(aggregate(windows(), calls=(latest,))).spec) is WindowAggregateSpec


def filtered(source: l.Plan, condition: Expression) -> l.Filter:
    return l.Filter(source.schema, source, condition)


def test_a_filter_of_rows_is_applied_before_the_windows() -> None:
    operation = plan(aggregate(filtered(windows(), is_greater(Ref(t.INT, 1), Lit(t.INT, 3)))), two_phase=False)
    (rows,) = operation.inputs
    assert (type(operation.spec), rows.name, rows.schema) == (SlicedWindowAggregateSpec, "Filter", ROWS.schema)


@pytest.mark.parametrize(
    "condition",
    [
        is_greater(Ref(t.TimestampType(3), 4), Ref(ROWTIME, 2)),
        is_greater(Apply(t.DOUBLE, "RAND", ()), Lit(t.DOUBLE, 0.5)),
    ],
    ids=["of the window", "random"],
)
def test_other_filters_are_applied_after_the_windows(condition: Expression) -> None:
    assert type(plan(aggregate(filtered(windows(), condition))).spec) is WindowAggregateSpec


def test_a_projection_is_computed_before_the_windows() -> None:
    source = windows()
    doubled = Apply(t.INT, "+", (Ref(t.INT, 1), Ref(t.INT, 1)))
    refs = source.refs()
    projected = l.project(source, [refs[4], doubled, refs[3]], ["end", "twice", "start"])
    call = AggregateCall("SUM", (1,), t.BIGINT, (t.INT,))
    operation = plan(aggregate(projected, keys=(2, 0), calls=(call,)), two_phase=False)
    assert type(operation.spec) is SlicedWindowAggregateSpec
    (rows,) = operation.inputs
    assert rows.schema.names == ["twice", "ts"], "the time attribute is kept"
    assert operation.spec.calls[0].args == (0,)
    assert operation.spec.window.time == 1


@pytest.mark.parametrize(
    "expr",
    [is_greater(Ref(t.TimestampType(3), 4), Ref(ROWTIME, 2)), Apply(t.DOUBLE, "RAND", ())],
    ids=["of the window", "random"],
)
def test_other_projections_are_computed_after_the_windows(expr: Expression) -> None:
    source = windows()
    refs = source.refs()
    projected = l.project(source, [refs[4], expr, refs[3]], ["end", "value", "start"])
    assert type(plan(aggregate(projected, keys=(2, 0), calls=(COUNT,))).spec) is WindowAggregateSpec


def test_sessions_are_aggregated_without_keeping_rows() -> None:
    operation = plan(aggregate(windows(window=SESSION)))
    assert (operation.name, type(operation.spec)) == ("GlobalWindowAggregate", SessionAggregateSpec)
    assert type(operation.inputs[0].spec) is LocalSessionAggregateSpec


@pytest.mark.parametrize("keys", [(3, 4), (0, 1, 3, 4)])
def test_sessions_of_other_keys_keep_rows(keys: tuple[int, ...]) -> None:
    assert type(plan(aggregate(windows(window=SESSION), keys)).spec) is WindowAggregateSpec


def test_the_keys_are_an_upsert_key() -> None:
    for source in (windows(), windows(window=SESSION), windows(Table(ROWS.schema, ChangelogMode.RETRACT))):
        assert plan(aggregate(source, calls=(COUNT,))).upsert_keys == {(0, 1, 2)}
