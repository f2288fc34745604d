"""Lazy rows, rows that the local phase of Top-N drops, and batches without copies have the right rows."""

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


def gather(rows: LazyRows) -> list[Any]:
    return list(zip(*(column.to_pylist() for column in rows), strict=True))


@given(st.lists(st.integers(0, 29), max_size=40), st.data())
def test_lazy_rows_are_the_selected_rows(selected: list[int], data: st.DataObject) -> None:
    parts = [table(10), SelectedRows(table(30, 100), np.arange(29, 9, -2)), table(10, 200)]
    expected = [row for part in parts for row in gather(part)]
    lazy_batch: LazyRows = ConcatenatedRows(parts)
    if data.draw(st.booleans()):
        assert gather(lazy_batch) == expected
    lazy_batch, expected = SelectedRows(lazy_batch, np.array(selected, dtype=np.int64)), [expected[i] for i in selected]
    indexes = data.draw(st.lists(st.integers(0, len(selected) - 1), max_size=9)) if selected else []
    if data.draw(st.booleans()):
        assert lazy_batch[1].to_pylist() == [row[1] for row in expected]
    lazy_batch, expected = SelectedRows(lazy_batch, np.array(indexes, dtype=np.int64)), [expected[i] for i in indexes]
    both = SelectedColumns(JoinedRows(lazy_batch, SelectedRows(lazy_batch, np.arange(len(indexes)))), (3, 0))
    assert gather(both) == [(row[1], row[0]) for row in expected]


def batch_of(rows: list[tuple[int | None, ...]]) -> LazyBatch:
    columns = [pa.array(values, pa.int64()) for values in zip(*rows, strict=True)]
    return LazyBatch(create_row_type_info(SCHEMA), MaterializedRows(columns, len(rows)), None, SCHEMA)


def test_a_lazy_batch_is_sliced_like_other_batches() -> None:
    rows = [(i, i * i, None) for i in range(9)]
    lazy_batch = batch_of(rows)
    materialized = Batch(lazy_batch.record_type, array=batch_of(rows).array())
    for cut in (lambda b: b.slice(2, 20), lambda b: b.take(np.array([5, 1])), lambda b: b.with_timestamps(None)):
        assert cut(lazy_batch).array().equals(cut(materialized).array())
        assert len(cut(lazy_batch)) == len(cut(materialized))
    assert lazy_batch.rows() == materialized.rows()


def test_a_copied_batch_has_equal_rows_in_new_objects() -> None:
    batch = batch_of([(i, i * i, None) for i in range(9)])
    copy = batch.copy()
    assert isinstance(copy, LazyBatch)
    assert len(copy) == 9
    assert copy.rows() == batch.rows()
    assert copy.rows()[0] is not batch.rows()[0]


class CollectedBatches:
    """Collects the batches that an operator emits."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []

    def emit(self, batch: Batch) -> None:
        array = batch.array()
        self.rows += zip(*(array.field(i).to_pylist() for i in range(3)), strict=True)


def find_first_rows(rows: list[tuple[Any, ...]], spec: LocalRankSpec) -> dict[Any, list[Any]]:
    """Return the first rows of each partition, computed row by row."""
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
def test_the_local_phase_drops_only_rows_that_are_not_in_the_result(
    order: Any, limit: int, later_first: bool, rows: list[tuple[Any, ...]], cuts: list[int]
) -> None:
    rows = [(*row, row_index) for row_index, row in enumerate(rows)]
    spec = LocalRankSpec(SCHEMA, (0,), order, limit, later_first)
    operator, output = LocalRankOperator.__new__(LocalRankOperator), CollectedBatches()
    operator._spec, operator._unchecked_batches, operator.out = spec, 0, output  # type: ignore[assignment]
    operator._mini_batch = MiniBatch(cuts[0] if cuts else None)
    remaining = rows
    for cut in [*cuts, len(rows)]:
        if remaining:
            operator.on_batch(batch_of(remaining[:cut]), 0)
        remaining = remaining[cut:]
    assert find_first_rows(output.rows, spec) == find_first_rows(rows, spec)
    assert output.rows == [row for row in rows if row in output.rows]


@pytest.mark.parametrize(
    ("source", "key", "local"),
    [
        ("one", "k", True),
        ("(SELECT k, v FROM one)", "v", True),
        ("(SELECT a.* FROM one a JOIN one b USING (k))", "k", False),
    ],
)
def test_a_top_n_has_a_local_phase_if_there_is_an_exchange(source: str, key: str, local: bool) -> None:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("table.exec.mini-batch.enabled", "true")
    env.execute_sql("CREATE TABLE one (k INT, v INT) WITH ('connector' = 'datagen')")
    query = NUMBERED.format(key, "v DESC", source)
    assert ("LocalRank" in env.explain_sql(query)) is local
    env.get_config().set("table.optimizer.agg-phase-strategy", "ONE_PHASE")
    assert "LocalRank" not in env.explain_sql(query)


@given(st.integers(2, 4), st.integers(6, 62), st.integers(0, 2**32))
def test_hashes_of_integers_equal_those_of_tuples(width: int, bits: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    columns = [draw.integers(-(1 << bits), 1 << bits, 40) >> draw.integers(0, bits, 40) for _ in range(width)]
    hashes = hash_number_tuples(columns)
    expected = [stable_hash(key) for key in zip(*(column.tolist() for column in columns), strict=True)]
    assert hashes is None or hashes.tolist() == expected
    assert hashes is not None or width > 2
    assert hash_number_tuples([np.array([-(2**63)]), np.array([1])]) is None


@pytest.mark.parametrize("span", [1, 50, 2**40, 2**62])
def test_rows_with_equal_keys_keep_their_order(span: int) -> None:
    draw = np.random.default_rng(7)
    keys = [draw.integers(-span, span, 2000), draw.integers(0, 2, 2000).astype(bool), draw.integers(0, 90, 2000)]
    assert np.array_equal(sort_stably(keys), np.lexsort(keys))
    assert np.array_equal(sort_stably(keys[:1]), np.argsort(keys[0], kind="stable"))


@pytest.mark.parametrize("count", [0, 7, 4000])
def test_streams_have_the_bytes_that_arrow_writes(count: int) -> None:
    materialized = pa.RecordBatch.from_arrays(
        [pa.array(range(5000)), pa.array(["x" * (i % 9) for i in range(5000)])], ["a", "b"]
    )
    batch = materialized.slice(3, count)
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
def test_large_byte_arrays_have_the_layout_of_small_ones(values: list[bytes | None]) -> None:
    type_info = Types.PRIMITIVE_ARRAY(Types.BYTE())
    array = type_info.to_arrow(values)
    array.validate(full=True)
    assert array.equals(pa.array(values, pa.binary()))
    assert type_info.from_arrow(array) == values


def test_a_writer_that_does_not_read_records_does_not_load_them() -> None:
    class Unreadable(Batch):
        def array(self) -> Any:
            raise AssertionError

        rows = array  # type: ignore[assignment]

    sink = SinkOperator.__new__(SinkOperator)
    assert isinstance(sink, Operator)
    sink._writer = BlackHoleWriter()
    sink.on_batch(Unreadable(create_row_type_info(SCHEMA), array=pa.array([1])), 0)
