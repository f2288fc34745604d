"""Rows that are gathered late, left out early, or packed without copies are the same rows."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.connectors.blackhole import BlackHoleWriter
from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator
from millstream.runtime.operators.sink import SinkOperator
from millstream.sql.columns import create_row_type_info
from millstream.sql.operators.lazy_rows import (
    ConcatenatedRows,
    JoinedRows,
    LazyBatch,
    LazyRows,
    MaterializedRows,
    SelectedColumns,
    SelectedRows,
)
from millstream.sql.operators.mini_batch import MiniBatch
from millstream.sql.operators.number_tuples import hash_number_tuples
from millstream.sql.operators.rank.local_rank import LocalRankOperator, LocalRankSpec
from millstream.sql.operators.rank.ordering import sort_stably
from millstream.sql.types import data_types as t
from millstream.state.key_groups import stable_hash
from millstream.table import EnvironmentSettings, TableEnvironment
from millstream.types.arrow_streams import write_stream_bytes, write_stream_pieces
from millstream.types.factory import Types

SCHEMA = t.row_of(["k", "v", "n"], [t.BigIntType(), t.BigIntType(), t.BigIntType()], null=True)
NUMBERED = "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {} ORDER BY {}) AS r FROM {}) WHERE r <= 2"


def table(count: int, base: int = 0) -> MaterializedRows:
    numbers = np.arange(base, base + count)
    return MaterializedRows([pa.array(numbers), pa.array([f"text {i}" for i in numbers])], count)


def gathered(rows: LazyRows) -> list[Any]:
    return list(zip(*(column.to_pylist() for column in rows), strict=True))


@given(st.lists(st.integers(0, 29), max_size=40), st.data())
def test_late_rows_are_those_that_were_chosen(chosen: list[int], data: st.DataObject) -> None:
    parts = [table(10), SelectedRows(table(30, 100), np.arange(29, 9, -2)), table(10, 200)]
    expected = [row for part in parts for row in gathered(part)]
    late: LazyRows = ConcatenatedRows(parts)
    if data.draw(st.booleans()):
        assert gathered(late) == expected
    late, expected = SelectedRows(late, np.array(chosen, dtype=np.int64)), [expected[i] for i in chosen]
    again = data.draw(st.lists(st.integers(0, len(chosen) - 1), max_size=9)) if chosen else []
    if data.draw(st.booleans()):
        assert late[1].to_pylist() == [row[1] for row in expected]
    late, expected = SelectedRows(late, np.array(again, dtype=np.int64)), [expected[i] for i in again]
    both = SelectedColumns(JoinedRows(late, SelectedRows(late, np.arange(len(again)))), (3, 0))
    assert gathered(both) == [(row[1], row[0]) for row in expected]


def batch_of(rows: list[tuple[int | None, ...]]) -> LazyBatch:
    columns = [pa.array(values, pa.int64()) for values in zip(*rows, strict=True)]
    return LazyBatch(create_row_type_info(SCHEMA), MaterializedRows(columns, len(rows)), None, SCHEMA)


def test_a_late_batch_is_cut_like_any_other() -> None:
    rows = [(i, i * i, None) for i in range(9)]
    late = batch_of(rows)
    whole = Batch(late.record_type, array=batch_of(rows).array())
    for cut in (lambda b: b.slice(2, 20), lambda b: b.take(np.array([5, 1])), lambda b: b.with_timestamps(None)):
        assert cut(late).array().equals(cut(whole).array())
        assert len(cut(late)) == len(cut(whole))
    assert late.rows() == whole.rows()


def test_a_copied_batch_has_the_same_rows_as_other_objects() -> None:
    batch = batch_of([(i, i * i, None) for i in range(9)])
    copy = batch.copy()
    assert isinstance(copy, LazyBatch)
    assert len(copy) == 9
    assert copy.rows() == batch.rows()
    assert copy.rows()[0] is not batch.rows()[0]


class Kept:
    """What an operator emitted."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []

    def emit(self, batch: Batch) -> None:
        array = batch.array()
        self.rows += zip(*(array.field(i).to_pylist() for i in range(3)), strict=True)


def shown(rows: list[tuple[Any, ...]], spec: LocalRankSpec) -> dict[Any, list[Any]]:
    """The first rows of each partition, found row by row."""
    groups: dict[Any, list[Any]] = defaultdict(list)
    for row in rows:
        groups[row[0]].append(row)
    for group in groups.values():
        if spec.later_first:
            group.reverse()
        for column, ascending, _ in reversed(spec.order):
            group.sort(key=lambda row, c=column: (row[c] is not None, row[c] or 0), reverse=not ascending)
        del group[spec.limit :]
    return groups


ROWS = st.lists(st.tuples(st.integers(0, 3) | st.none(), st.integers(0, 5) | st.none()), max_size=40)


@pytest.mark.parametrize(
    ("order", "limit", "later_first"),
    [(((1, True, True),), 1, False), (((1, False, False),), 1, True), (((1, True, True),), 3, False), ((), 1, True)],
)
@settings(max_examples=40)
@given(rows=ROWS, cuts=st.lists(st.integers(1, 15), max_size=5))
def test_rows_that_are_left_out_early_would_not_be_shown(
    order: Any, limit: int, later_first: bool, rows: list[tuple[Any, ...]], cuts: list[int]
) -> None:
    rows = [(*row, place) for place, row in enumerate(rows)]
    spec = LocalRankSpec(SCHEMA, (0,), order, limit, later_first)
    operator, kept = LocalRankOperator.__new__(LocalRankOperator), Kept()
    operator._spec, operator._unchecked_batches, operator.out = spec, 0, kept  # type: ignore[assignment]
    operator._mini_batch = MiniBatch(cuts[0] if cuts else None)
    left = rows
    for cut in [*cuts, len(rows)]:
        if left:
            operator.on_batch(batch_of(left[:cut]), 0)
        left = left[cut:]
    assert shown(kept.rows, spec) == shown(rows, spec)
    assert kept.rows == [row for row in rows if row in kept.rows]


@pytest.mark.parametrize(
    ("source", "key", "local"),
    [
        ("one", "k", True),
        ("(SELECT k, v FROM one)", "v", True),
        ("(SELECT a.* FROM one a JOIN one b USING (k))", "k", False),
    ],
)
def test_rows_are_left_out_early_where_they_are_dealt_out(source: str, key: str, local: bool) -> None:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("table.exec.mini-batch.enabled", "true")
    env.execute_sql("CREATE TABLE one (k INT, v INT) WITH ('connector' = 'datagen')")
    query = NUMBERED.format(key, "v DESC", source)
    assert ("LocalRank" in env.explain_sql(query)) is local
    env.get_config().set("table.optimizer.agg-phase-strategy", "ONE_PHASE")
    assert "LocalRank" not in env.explain_sql(query)


@given(st.integers(2, 4), st.integers(6, 62), st.integers(0, 2**32))
def test_hashes_of_whole_numbers_are_those_of_tuples(width: int, bits: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    columns = [draw.integers(-(1 << bits), 1 << bits, 40) >> draw.integers(0, bits, 40) for _ in range(width)]
    found = hash_number_tuples(columns)
    expected = [stable_hash(key) for key in zip(*(column.tolist() for column in columns), strict=True)]
    assert found is None or found.tolist() == expected
    assert found is not None or width > 2
    assert hash_number_tuples([np.array([-(2**63)]), np.array([1])]) is None


@pytest.mark.parametrize("span", [1, 50, 2**40, 2**62])
def test_rows_of_equal_numbers_stay_in_order(span: int) -> None:
    draw = np.random.default_rng(7)
    keys = [draw.integers(-span, span, 2000), draw.integers(0, 2, 2000).astype(bool), draw.integers(0, 90, 2000)]
    assert np.array_equal(sort_stably(keys), np.lexsort(keys))
    assert np.array_equal(sort_stably(keys[:1]), np.argsort(keys[0], kind="stable"))


@pytest.mark.parametrize("count", [0, 7, 4000])
def test_streams_are_as_arrow_writes_them(count: int) -> None:
    whole = pa.RecordBatch.from_arrays(
        [pa.array(range(5000)), pa.array(["x" * (i % 9) for i in range(5000)])], ["a", "b"]
    )
    batch = whole.slice(3, count)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    assert write_stream_bytes(batch, before=b"12345678") == b"12345678" + sink.getvalue().to_pybytes()
    packed = b"".join(write_stream_pieces(batch, compression="lz4"))
    assert pa.ipc.open_stream(packed).read_next_batch().equals(batch)
    assert count < 1000 or len(packed) < sink.getvalue().size


@pytest.mark.parametrize(
    "values", [[b"x" * (2 << 20)], [None, b"y" * (2 << 20), None], [b"", b"a", b"b" * (2 << 20), None]]
)
def test_large_bytes_are_laid_out_like_small_ones(values: list[bytes | None]) -> None:
    kind = Types.PRIMITIVE_ARRAY(Types.BYTE())
    array = kind.to_arrow(values)
    array.validate(full=True)
    assert array.equals(pa.array(values, pa.binary()))
    assert kind.from_arrow(array) == values


def test_a_writer_that_does_not_read_gets_no_records() -> None:
    class Unreadable(Batch):
        def array(self) -> Any:
            raise AssertionError

        rows = array  # type: ignore[assignment]

    sink = SinkOperator.__new__(SinkOperator)
    assert isinstance(sink, Operator)
    sink._writer = BlackHoleWriter()
    sink.on_batch(Unreadable(create_row_type_info(SCHEMA), array=pa.array([1])), 0)
