"""Flink's lookup join: each row with the rows that another table has for its key at processing time.

Promises: the distinct keys of a batch are looked up together; a row keeps its row kind and its position among the
others. Results are not state: after a recovery a row may be joined with a newer version. A table that is cached
completely is reloaded when it is due, before the rows of a batch are joined.
Does not know: where rows are looked up; the table's connector does."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.connector.lookup_cache import CachePolicy, Key, LookupCache
from millstream.errors import ExternalError
from millstream.runtime.batch import Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.columns import (
    SqlTypeInfo,
    column,
    combine_columns,
    create_row_array,
    is_nested,
    to_internal_values,
    to_tuples,
)
from millstream.sql.connector.lookup import TableLookup
from millstream.sql.connector.lookup_reload import Reload
from millstream.sql.evaluation.evaluate import Condition, EvaluationFailed, Projection
from millstream.sql.expressions.nodes import Expression
from millstream.sql.operators.base import TableOperator
from millstream.sql.operators.join.whole_tables import WholeTable
from millstream.sql.operators.lazy_rows import (
    JoinedRows,
    LazyRows,
    MaterializedRows,
    SelectedRows,
    get_batch_columns,
    get_batch_row_kinds,
)
from millstream.sql.operators.spec import PlanContext, SqlOperatorSpec, StateTraits
from millstream.sql.types import data_types as t

_THREADS = 8


class LookupTimeout(ExternalError):
    """A lookup took longer than its timeout."""

    hint = "raise 'timeout' in the LOOKUP hint, or table.exec.async-lookup.timeout"

    def __init__(self, operator: str, keys: int, seconds: float) -> None:
        super().__init__(f"{operator}: the lookup of {keys} keys timed out after {seconds:g} s")


@dataclass(frozen=True)
class Retry:
    """Keys without a row are looked up again after `delay` milliseconds, at most `attempts` times."""

    delay: int
    attempts: int


@dataclass(frozen=True)
class LookupJoinSpec(SqlOperatorSpec):
    """A lookup join.

    `keys` are column indexes of the left side. `condition` and `exprs` filter and project the rows of the table,
    `joined` is a condition over both rows. Without `exprs` the rows are used as they are looked up."""

    left: t.RowType
    right: t.RowType
    output: t.RowType
    kind: str
    keys: tuple[int, ...]
    lookup: TableLookup
    condition: Expression | None = None
    exprs: tuple[Expression, ...] | None = None
    joined: Expression | None = None
    retry: Retry | None = None
    timeout: int | None = None
    capacity: int = 100
    zone: str = "UTC"

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on."""
        return StateTraits(free={"key": ", ".join(plan.inputs[0][i] for i in self.keys)})

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return LookupJoinOperator(context, self)


class LookupJoinOperator(TableOperator):
    """Stateless; results may be cached, depending on the options of the table."""

    def __init__(self, context: OperatorContext, spec: LookupJoinSpec) -> None:
        super().__init__(context, spec.output, spec.zone, spec)
        self._spec = spec
        policy = spec.lookup.cache
        self._cache = LookupCache(policy) if isinstance(policy, CachePolicy) else None
        self._cached_table: dict[Key, list[Any]] = {}
        self._load_times: tuple[int, int] | None = None  # times of the first and the last load of the whole table
        self._type_infos = [SqlTypeInfo(data_type) for data_type in spec.lookup.schema.types]
        self._condition = None if spec.condition is None else Condition(spec.condition)
        self._projection = None if spec.exprs is None else Projection(spec.exprs)
        self._joined = None if spec.joined is None else Condition(spec.joined)
        self._opened = False
        self._pool: ThreadPoolExecutor | None = None

    def on_batch(self, batch: Batch, side: int) -> None:
        """Look up the keys of the batch, then join."""
        spec, width = self._spec, len(self._spec.left)
        columns = get_batch_columns(batch, width)
        key_indexes, keys = find_distinct_keys([columns[i] for i in spec.keys], [spec.left.types[i] for i in spec.keys])
        try:
            self._join(columns, get_batch_row_kinds(batch, width), key_indexes, keys, self._look_up_cached(keys))
        except EvaluationFailed as problem:
            raise self.fail(problem) from None

    # ------------------------------------------------------------------------------------------------------- lookups

    def _look_up_cached(self, keys: list[Key]) -> dict[Key, list[Any]]:
        now, cache = self.context.now, self._cache
        if isinstance(self._spec.lookup.lookup, WholeTable):
            self._reload(self._spec.lookup.lookup, now)
            return {key: self._cached_table.get(key, []) for key in keys}
        cached: dict[Key, list[Any]] = {}
        if cache is not None:
            cached = {key: rows for key in keys if (rows := cache.get(key, now)) is not None}
        missing = [key for key in keys if key not in cached]
        looked_up = self._look_up(missing)
        retry = self._spec.retry
        for _ in range(0 if retry is None else retry.attempts):
            assert retry is not None
            without_rows = [key for key in missing if not looked_up[key]]
            if not without_rows:
                break
            time.sleep(retry.delay / 1000)
            looked_up.update(self._look_up(without_rows))
        if cache is not None:
            self.context.metrics.count("lookup.hits", len(cached))
            for key, rows in looked_up.items():
                cache.put(key, rows, now)
        self.context.metrics.count("lookup.asked", len(missing))
        return {**cached, **looked_up}

    def _reload(self, table: WholeTable, now: int) -> None:
        """Reload the table if it is due; if it cannot be read, the join fails."""
        policy, load_times = self._spec.lookup.cache, self._load_times
        assert isinstance(policy, Reload)
        if load_times is not None and now < policy.next_reload(*load_times):
            return
        rows_by_key: dict[Key, list[Any]] = {}
        key_types = [table.schema.types[i] for i in table.keys]
        for array in table.read(now):
            row_indexes, rows = self._select_rows(array)
            selected = array.take(pa.array(row_indexes))
            columns = [
                to_internal_values(selected.field(i), data_type)
                for i, data_type in zip(table.keys, key_types, strict=True)
            ]
            for key, row in zip(zip(*columns, strict=True), rows, strict=True):
                rows_by_key.setdefault(key, []).append(row)
            self.context.metrics.count("lookup.loaded", len(array))
        self._cached_table, self._load_times = rows_by_key, (now if load_times is None else load_times[0], now)

    def _look_up(self, keys: list[Key]) -> dict[Key, list[Any]]:
        """Look up keys, and return their rows converted, filtered and projected."""
        if not keys:
            return {}
        table = self._spec.lookup
        if not self._opened:
            table.lookup.open()
            self._opened = True
        pieces = [keys[i : i + table.max_keys] for i in range(0, len(keys), table.max_keys)]
        answers = (
            self._look_up_concurrently(pieces) if table.asynchronous else [table.lookup.find(piece) for piece in pieces]
        )
        values: list[Sequence[Any]] = []
        keys_of_rows: list[Key] = []
        for piece, answer in zip(pieces, answers, strict=True):
            for key in piece:
                key_rows = answer.get(key, ())
                values += key_rows
                keys_of_rows += [key] * len(key_rows)
        rows_by_key: dict[Key, list[Any]] = {key: [] for key in keys}
        columns = zip(self._type_infos, zip(*values, strict=True), strict=True) if values else ()
        row_indexes, rows = self._select_values(
            list(zip(*(type_info.internals(column) for type_info, column in columns), strict=True))
        )
        for row_index, row in zip(row_indexes, rows, strict=True):
            rows_by_key[keys_of_rows[row_index]].append(row)
        return rows_by_key

    def _look_up_concurrently(self, pieces: Sequence[list[Key]]) -> list[Any]:
        """Run several lookups concurrently."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(min(_THREADS, self._spec.capacity), thread_name_prefix="lookup")
        limit = self._spec.timeout
        futures = [self._pool.submit(self._spec.lookup.lookup.find, piece) for piece in pieces]
        answers: list[Any] = []
        for piece, future in zip(pieces, futures, strict=True):
            try:
                answers.append(future.result(None if limit is None else limit / 1000))
            except FutureTimeout:
                raise LookupTimeout(self.context.name, len(piece), (limit or 0) / 1000) from None
        return answers

    def _select_values(self, rows: list[tuple[Any, ...]]) -> tuple[Sequence[int], list[tuple[Any, ...]]]:
        row_indexes: Sequence[int] = range(len(rows))
        if not rows or (self._condition is None and self._projection is None):
            return row_indexes, rows
        return self._select_rows(create_row_array(rows, None, self._spec.lookup.schema))

    def _select_rows(self, array: pa.Array) -> tuple[Sequence[int], list[tuple[Any, ...]]]:
        """Filter and project rows of the table, and return the indexes of the rows that remain."""
        schema = self._spec.lookup.schema
        row_indexes: Sequence[int] = range(len(array))
        if self._condition is not None:
            selected = np.flatnonzero(self._condition.holds(self.create_frame(array, len(schema))))
            row_indexes, array = selected.tolist(), array.take(pa.array(selected))
        if self._projection is not None:
            columns = self._projection.columns(self.create_frame(array, len(schema)))
            array = combine_columns(columns, None, self._spec.right, len(array))
        return row_indexes, to_tuples(array, self._spec.right)

    # ------------------------------------------------------------------------------------------------------- joining

    def _join(
        self,
        columns: LazyRows,
        row_kinds: pa.Array | None,
        key_indexes: np.ndarray,
        keys: list[Key],
        answers: dict[Key, list[Any]],
    ) -> None:
        """Join rows with their lookup results.

        `key_indexes` has the index of each row's key; for a row without a key it is the number of keys."""
        right_columns = self._take_right_columns([row for key in keys for row in answers[key]])
        sizes = np.array([*(len(answers[key]) for key in keys), 0], np.int64)
        counts, firsts = sizes[key_indexes], (np.cumsum(sizes) - sizes)[key_indexes]
        all_rows = np.arange(columns.size)
        left = np.repeat(all_rows, counts)
        steps = np.arange(len(left)) - np.repeat(np.cumsum(counts) - counts, counts)
        right = np.repeat(firsts, counts) + steps
        if self._joined is not None and len(left):
            pairs = _find_pairs(columns, right_columns, left, pa.array(right))
            holds = self._joined.holds(self.create_frame_of_columns(pairs, len(left)))
            left, right = left[holds], right[holds]
        partners = pa.array(right)
        if self._spec.kind == "left":
            unmatched = np.setdiff1d(all_rows, left)
            with_unmatched = np.concatenate([left, unmatched])
            order = np.argsort(with_unmatched, kind="stable")
            right_indexes = np.concatenate([right, np.zeros(len(unmatched), np.int64)])[order]
            left = with_unmatched[order]
            partners = pa.array(right_indexes, mask=np.isin(left, unmatched))
        output_kinds = None if row_kinds is None else row_kinds.take(pa.array(left))
        self.emit_lazy(_find_pairs(columns, right_columns, left, partners), output_kinds)

    def _take_right_columns(self, rows: list[tuple[Any, ...]]) -> list[pa.Array]:
        """Return the columns of looked-up rows; one row of NULLs if there are none, so that indexes are valid."""
        data_types = self._spec.right.types
        values = zip(*rows, strict=True) if rows else ((None,) for _ in data_types)
        return [
            column(list(column_values), data_type) for column_values, data_type in zip(values, data_types, strict=True)
        ]

    def close(self) -> None:
        """Release threads and connections at the end of the job."""
        super().close()
        self.dispose()

    def dispose(self) -> None:
        """Release threads and connections."""
        super().dispose()
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)
        if self._opened:
            self._opened = False
            self._spec.lookup.lookup.close()


def _find_pairs(columns: LazyRows, right_columns: Sequence[pa.Array], left: np.ndarray, right: pa.Array) -> LazyRows:
    """Return rows side by side with their lookup results."""
    is_identity = len(left) == columns.size and bool((left == np.arange(columns.size)).all())
    left_rows = columns if is_identity else SelectedRows(columns, left)
    return JoinedRows(left_rows, MaterializedRows([column.take(right) for column in right_columns], len(left)))


def find_distinct_keys(columns: Sequence[pa.Array], data_types: Sequence[t.DataType]) -> tuple[np.ndarray, list[Key]]:
    """Return for each row the index of its key, and the distinct keys; a row with NULL in its key has the index past
    the end."""
    codes = np.zeros(len(columns[0]), np.int64)
    valid = np.ones(len(codes), bool)
    parts: list[list[Any]] = []
    for array, data_type in zip(columns, data_types, strict=True):
        column_codes, values = _encode(array, data_type)
        valid &= column_codes >= 0
        codes = codes * max(len(values), 1) + np.maximum(column_codes, 0)
        parts.append(values)
    distinct_codes, inverse = np.unique(codes[valid], return_inverse=True)
    key_indexes = np.full(len(codes), len(distinct_codes), np.int64)
    key_indexes[valid] = inverse
    key_columns: list[list[Any]] = []
    for values in reversed(parts):
        distinct_codes, rest = np.divmod(distinct_codes, max(len(values), 1))
        key_columns.append([values[i] for i in rest.tolist()])
    return key_indexes, list(zip(*reversed(key_columns), strict=True))


def _encode(array: pa.Array, data_type: t.DataType) -> tuple[np.ndarray, list[Any]]:
    """Return for each row the index of its value among the distinct values, -1 for NULL, and the distinct values."""
    if is_nested(data_type):
        first_indexes: dict[Any, int] = {}
        values = to_internal_values(array, data_type)
        return np.array(
            [-1 if v is None else first_indexes.setdefault(v, len(first_indexes)) for v in values], np.int64
        ), list(first_indexes)
    coded = array.dictionary_encode()
    return coded.indices.fill_null(-1).to_numpy().astype(np.int64), to_internal_values(coded.dictionary, data_type)
