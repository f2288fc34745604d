"""Filters are pushed into joins, and below them."""

from __future__ import annotations

import pytest

from millstream.sql.expressions.nodes import Apply, Expression, Lit, Ref, combine_conjuncts
from millstream.sql.logical import nodes as l
from millstream.sql.logical.rules.filter_into_join import filter_into_join
from millstream.sql.types import data_types as t

LEFT = l.Values(t.row_of(["a"], [t.INT], null=False), ())
RIGHT = l.Values(t.row_of(["b"], [t.INT], null=False), ())
A, B = Ref(t.INT, 0), Ref(t.INT, 1)


def join(join_type: str) -> l.Join:
    return l.Join(l.join_schemas(LEFT.schema, RIGHT.schema, join_type), LEFT, RIGHT, join_type, None)


def compare(left: Expression, right: Expression) -> Expression:
    return Apply(t.BOOLEAN, "=", (left, right))


def is_one(column: Expression) -> Expression:
    return compare(column, Lit(t.INT, 1))


def rewrite(plan: l.Plan, *conditions: Expression) -> l.Plan:
    condition = combine_conjuncts(list(conditions))
    assert condition is not None
    return filter_into_join(l.Filter(plan.schema, plan, condition))


def test_conjuncts_of_an_inner_join_go_to_the_side_that_they_read() -> None:
    rewritten = rewrite(join("inner"), is_one(A), is_one(B), compare(A, B))
    assert isinstance(rewritten, l.Join)
    assert rewritten.condition == compare(A, B)
    assert rewritten.left == l.Filter(LEFT.schema, LEFT, is_one(A))
    assert rewritten.right == l.Filter(RIGHT.schema, RIGHT, is_one(A))  # the column has index 0 on its own side


def test_a_left_join_takes_conditions_on_its_left_side_only() -> None:
    rewritten = rewrite(join("left"), is_one(A), is_one(B))
    assert isinstance(rewritten, l.Filter)
    assert rewritten.condition == is_one(B)
    assert isinstance(rewritten.input, l.Join)
    assert rewritten.input.left == l.Filter(LEFT.schema, LEFT, is_one(A))
    assert rewritten.input.right == RIGHT


@pytest.mark.parametrize("join_type", ["right", "full"])
def test_other_outer_joins_are_not_changed(join_type: str) -> None:
    plan = join(join_type)
    assert rewrite(plan, is_one(A)) == l.Filter(plan.schema, plan, is_one(A))


@pytest.mark.parametrize("join_type", ["semi", "anti"])
def test_a_filter_goes_below_a_semi_join(join_type: str) -> None:
    rewritten = rewrite(join(join_type), is_one(A))
    assert isinstance(rewritten, l.Join)
    assert rewritten.left == l.Filter(LEFT.schema, LEFT, is_one(A))


def test_a_conjunct_of_all_branches_becomes_the_join_condition() -> None:
    branches = [combine_conjuncts([compare(A, B), is_one(column)]) for column in (A, B)]
    assert branches[0] is not None
    assert branches[1] is not None
    rewritten = rewrite(join("inner"), Apply(t.BOOLEAN, "OR", (branches[0], branches[1])))
    assert isinstance(rewritten, l.Join)
    assert rewritten.condition == combine_conjuncts([compare(A, B), Apply(t.BOOLEAN, "OR", (is_one(A), is_one(B)))])
