"""Repeated subexpressions are computed once, and have the same value as without sharing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from millstream.sql.columns import SqlTypeInfo
from millstream.sql.evaluation.evaluate import Condition, EvaluationFailed, Frame, Projection
from millstream.sql.evaluation.repeated import find_repeated
from millstream.sql.expressions.nodes import Apply, Choose, Expression, Lit, Ref, UserCall
from millstream.sql.functions import registry
from millstream.sql.types import data_types as t
from millstream.types.arrow_types import TypeMismatch

WORD = Ref(t.STRING, 0)
LOWER = Apply(t.STRING, "LOWER", (WORD,))
WORDS = ["A", "b", None, "C", "a", "B"]


def literal(value: Any) -> Lit:
    return Lit(t.STRING if isinstance(value, str) else t.INT, value)


def equals(operand: Expression, value: str) -> Apply:
    return Apply(t.BOOLEAN, "=", (operand, literal(value)))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the number of rows of each call of LOWER."""
    function, row_counts = registry.get_function("LOWER"), []

    def count_rows(frame: Frame, args: list[Any], data_types: Any, data_type: Any) -> Any:
        row_counts.append(len(args[0]))
        return function.evaluate(frame, args, data_types, data_type)

    monkeypatch.setitem(registry._FUNCTIONS, "LOWER", replace(function, evaluate=count_rows))
    return row_counts


def test_a_condition_and_a_projection_share_subexpressions(calls: list[int]) -> None:
    case_expression = Choose(
        t.STRING, (equals(LOWER, "a"), literal("first"), equals(LOWER, "b"), literal("second"), LOWER)
    )
    condition = Apply(t.BOOLEAN, "OR", (equals(LOWER, "a"), equals(LOWER, "c")))
    shared = find_repeated([condition, LOWER, case_expression])
    frame = Frame([pa.array(WORDS)], len(WORDS))
    rows = np.flatnonzero(Condition(condition, shared).holds(frame))
    some = frame.some(pa.array(rows))
    columns = Projection([LOWER, case_expression], shared).columns(some)
    assert [column.to_pylist() for column in columns] == [["a", "c", "a"], ["first", "c", "first"]]
    assert calls == [len(WORDS)]
    assert Projection([LOWER, LOWER]).columns(Frame([pa.array(["X"])], 1))[1].to_pylist() == ["x"]
    assert calls == [len(WORDS), 1]  # another frame has other values


def test_random_values_and_user_defined_functions_are_not_shared() -> None:
    random_value = Apply(t.DOUBLE, "RAND", ())
    assert (
        find_repeated([random_value, Apply(t.DOUBLE, "ABS", (random_value,)), Apply(t.DOUBLE, "ABS", (random_value,))])
        == {}
    )
    user = UserCall(t.STRING, "f", None, (LOWER,))
    assert list(find_repeated([user, user])) == [LOWER]


def test_a_subexpression_of_a_branch_is_computed_for_the_rows_of_the_branch(calls: list[int]) -> None:
    number = Ref(t.INT, 0)
    zero = Apply(t.BOOLEAN, "=", (number, literal(0)))
    share = Apply(t.INT, "/", (literal(12), number))
    twice = Apply(t.INT, "+", (share, share))
    projection = Projection([Choose(t.INT, (zero, literal(-1), twice)), Choose(t.INT, (zero, literal(-2), share))])
    frame = Frame([pa.array([0, 3, 4], pa.int32())], 3)
    assert [column.to_pylist() for column in projection.columns(frame)] == [[-1, 8, 6], [-2, 4, 3]]
    with pytest.raises(EvaluationFailed):
        Projection([twice]).columns(frame)


@pytest.mark.parametrize("texts", [[f"t{i}" for i in range(500)], ["a", None, "b", "a"] * 100, [None] * 100, ["x"]])
def test_repeated_texts_are_computed_once(texts: list[str | None]) -> None:
    row_counts: list[str] = []

    def doubled(text: str, suffix: str) -> str | None:
        row_counts.append(text)
        return None if text == "b" else suffix.join((text, text))

    evaluate = registry.by_row(doubled)
    column, data_types = pa.array(texts, pa.string()), [t.STRING, t.STRING]
    results = evaluate(Frame([], len(texts)), [column, pa.scalar("-")], data_types, t.STRING)
    assert results.to_pylist() == [None if text in (None, "b") else f"{text}-{text}" for text in texts]
    assert len(row_counts) == len({text for text in texts if text is not None})
    nothing = evaluate(Frame([], len(texts)), [column, pa.scalar(None, pa.string())], data_types, t.STRING)
    assert nothing.null_count == len(texts)


@pytest.mark.parametrize(
    ("data_type", "values", "invalid_values"),
    [
        (t.INT, [1, None, -(2**31)], [2**31, "1", True]),
        (t.BIGINT, [2**63 - 1, 5.0], [2**63, 2.5]),
        (t.STRING, ["a", None, ""], [b"a", 1]),
        (t.BOOLEAN, [True, None], [1, "true"]),
        (t.DOUBLE, [1.5, None, 2], ["x"]),
    ],
)
def test_values_are_checked_with_and_without_conversion(
    data_type: t.DataType, values: list[Any], invalid_values: list[Any]
) -> None:
    info = SqlTypeInfo(data_type)
    assert info.internals(values) == info.to_arrow(values).to_pylist() == values
    for value in invalid_values:
        for column in ([value], [*values, value]):
            with pytest.raises(TypeMismatch):
                info.internals(column)
            with pytest.raises(TypeMismatch):
                info.to_arrow(column)
