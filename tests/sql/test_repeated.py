"""What occurs several times in expressions is computed once, and has the value it would have alone."""

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


def equals(one: Expression, value: str) -> Apply:
    return Apply(t.BOOLEAN, "=", (one, literal(value)))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows LOWER was computed of, call by call."""
    function, seen = registry.get_function("LOWER"), []

    def counted(frame: Frame, args: list[Any], kinds: Any, kind: Any) -> Any:
        seen.append(len(args[0]))
        return function.evaluate(frame, args, kinds, kind)

    monkeypatch.setitem(registry._FUNCTIONS, "LOWER", replace(function, evaluate=counted))
    return seen


def test_a_condition_and_columns_share_what_they_have_in_common(calls: list[int]) -> None:
    chosen = Choose(t.STRING, (equals(LOWER, "a"), literal("first"), equals(LOWER, "b"), literal("second"), LOWER))
    condition = Apply(t.BOOLEAN, "OR", (equals(LOWER, "a"), equals(LOWER, "c")))
    shared = find_repeated([condition, LOWER, chosen])
    whole = Frame([pa.array(WORDS)], len(WORDS))
    rows = np.flatnonzero(Condition(condition, shared).holds(whole))
    some = whole.some(pa.array(rows))
    columns = Projection([LOWER, chosen], shared).columns(some)
    assert [column.to_pylist() for column in columns] == [["a", "c", "a"], ["first", "c", "first"]]
    assert calls == [len(WORDS)]
    assert Projection([LOWER, LOWER]).columns(Frame([pa.array(["X"])], 1))[1].to_pylist() == ["x"]
    assert calls == [len(WORDS), 1]  # another frame has other values


def test_chance_and_users_functions_are_computed_wherever_they_stand() -> None:
    chance = Apply(t.DOUBLE, "RAND", ())
    assert find_repeated([chance, Apply(t.DOUBLE, "ABS", (chance,)), Apply(t.DOUBLE, "ABS", (chance,))]) == {}
    user = UserCall(t.STRING, "f", None, (LOWER,))
    assert list(find_repeated([user, user])) == [LOWER]


def test_what_fails_for_rows_of_another_branch_is_computed_for_its_own(calls: list[int]) -> None:
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
def test_texts_that_come_again_are_computed_once(texts: list[str | None]) -> None:
    seen: list[str] = []

    def doubled(text: str, sign: str) -> str | None:
        seen.append(text)
        return None if text == "b" else sign.join((text, text))

    evaluate = registry.by_row(doubled)
    column, kinds = pa.array(texts, pa.string()), [t.STRING, t.STRING]
    made = evaluate(Frame([], len(texts)), [column, pa.scalar("-")], kinds, t.STRING)
    assert made.to_pylist() == [None if text in (None, "b") else f"{text}-{text}" for text in texts]
    assert len(seen) == len({text for text in texts if text is not None})
    nothing = evaluate(Frame([], len(texts)), [column, pa.scalar(None, pa.string())], kinds, t.STRING)
    assert nothing.null_count == len(texts)


@pytest.mark.parametrize(
    ("kind", "values", "wrong"),
    [
        (t.INT, [1, None, -(2**31)], [2**31, "1", True]),
        (t.BIGINT, [2**63 - 1, 5.0], [2**63, 2.5]),
        (t.STRING, ["a", None, ""], [b"a", 1]),
        (t.BOOLEAN, [True, None], [1, "true"]),
        (t.DOUBLE, [1.5, None, 2], ["x"]),
    ],
)
def test_values_that_fit_are_taken_whether_or_not_they_are_looked_at(
    kind: t.DataType, values: list[Any], wrong: list[Any]
) -> None:
    info = SqlTypeInfo(kind)
    assert info.internals(values) == info.to_arrow(values).to_pylist() == values
    for value in wrong:
        for column in ([value], [*values, value]):
            with pytest.raises(TypeMismatch):
                info.internals(column)
            with pytest.raises(TypeMismatch):
                info.to_arrow(column)
