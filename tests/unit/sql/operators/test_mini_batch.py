"""A mini-batch ends with exactly the row that reaches its limit."""

from __future__ import annotations

import pytest

from millstream.runtime.batch import Batch
from millstream.sql.operators.mini_batch import MiniBatch
from millstream.types.factory import Types


def parts(limit: int | None, *sizes: int) -> list[tuple[int, bool]]:
    mini_batch = MiniBatch(limit)
    batches = [Batch(Types.LONG(), rows=list(range(size))) for size in sizes]
    return [(len(part), is_full) for batch in batches for part, is_full in mini_batch.split(batch)]


@pytest.mark.parametrize(
    ("limit", "sizes", "expected"),
    [
        (None, (3, 4), [(3, False), (4, False)]),
        (3, (3,), [(3, True)]),
        (3, (2, 2), [(2, False), (1, True), (1, False)]),
        (3, (8,), [(3, True), (3, True), (2, False)]),
        (5, (2, 0, 1), [(2, False), (1, False)]),
    ],
)
def test_a_batch_is_split_where_the_mini_batch_is_full(
    limit: int | None, sizes: tuple[int, ...], expected: list[tuple[int, bool]]
) -> None:
    assert parts(limit, *sizes) == expected


def test_rows_keep_their_order_and_a_restart_forgets_the_count() -> None:
    mini_batch = MiniBatch(3)
    batch = Batch(Types.LONG(), rows=[1, 2])
    assert [is_full for _, is_full in mini_batch.split(batch)] == [False]
    mini_batch.restart()
    rows = [part.rows() for part, _ in mini_batch.split(Batch(Types.LONG(), rows=[3, 4, 5, 6]))]
    assert rows == [[3, 4, 5], [6]]
