"""Each row with the rows that another table has for its key now: Flink's lookup join.

Promises: one question for the distinct keys of a whole block; a row keeps its kind of change and its place among the
others. What was found is not state: after a recovery a row may meet a newer one. A table that is kept as a whole is
read again when it is due, before the rows of a block are joined.
Does not know: where rows are found; the table's connector does."""

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
    array_of,
    column,
    internal_values,
    is_nested,
    struct_of,
    tuples_of,
)
from millstream.sql.connector.lookup import TableLookup
from millstream.sql.connector.lookup_reload import Reload
from millstream.sql.evaluation.evaluate import Condition, EvaluationFailed, Projection
from millstream.sql.expressions.nodes import Expression
from millstream.sql.operators.base import TableOperator
from millstream.sql.operators.join.whole_tables import WholeTable
from millstream.sql.operators.late_rows import Beside, LateRows, Plain, Some, columns_of, kinds_in
from millstream.sql.operators.spec import PlanContext, SqlOperatorSpec, StateTraits
from millstream.sql.types import data_types as t

_THREADS = 8


class LookupTimeout(ExternalError):
    """A table has not answered in time."""

    hint = "raise 'timeout' in the LOOKUP hint, or table.exec.async-lookup.timeout"

    def __init__(self, operator: str, keys: int, seconds: float) -> None:
        super().__init__(f"{operator}: no answer for {keys} keys after {seconds:g} s")


@dataclass(frozen=True)
class Retry:
    """Keys that have no row are asked for again, `delay` milliseconds later, at most `attempts` times."""

    delay: int
    attempts: int


@dataclass(frozen=True)
class LookupJoinSpec(SqlOperatorSpec):
    """`keys` are positions on the left. `condition` and `exprs` are about the rows of the table, `joined` about both.

    Without `exprs` the rows are taken as they are found."""

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
        """The operator."""
        return LookupJoinOperator(context, self)


class LookupJoinOperator(TableOperator):
    """No state; answers may be remembered, as the table's options say."""

    def __init__(self, context: OperatorContext, spec: LookupJoinSpec) -> None:
        super().__init__(context, spec.output, spec.zone, spec)
        self._spec = spec
        policy = spec.lookup.cache
        self._cache = LookupCache(policy) if isinstance(policy, CachePolicy) else None
        self._kept: dict[Key, list[Any]] = {}
        self._read: tuple[int, int] | None = None  # when the whole table was read, first and last
        self._kinds_found = [SqlTypeInfo(kind) for kind in spec.lookup.schema.types]
        self._condition = None if spec.condition is None else Condition(spec.condition)
        self._projection = None if spec.exprs is None else Projection(spec.exprs)
        self._joined = None if spec.joined is None else Condition(spec.joined)
        self._opened = False
        self._pool: ThreadPoolExecutor | None = None

    def on_batch(self, batch: Batch, side: int) -> None:
        """Ask for the keys of the batch, then join."""
        spec, width = self._spec, len(self._spec.left)
        columns = columns_of(batch, width)
        places, keys = distinct([columns[i] for i in spec.keys], [spec.left.types[i] for i in spec.keys])
        try:
            self._join(columns, kinds_in(batch, width), places, keys, self._answers(keys))
        except EvaluationFailed as problem:
            raise self.fail(problem) from None

    # ----------------------------------------------------------------------------------------------------- questions

    def _answers(self, keys: list[Key]) -> dict[Key, list[Any]]:
        now, cache = self.context.now, self._cache
        if isinstance(self._spec.lookup.lookup, WholeTable):
            self._keep_up(self._spec.lookup.lookup, now)
            return {key: self._kept.get(key, []) for key in keys}
        found: dict[Key, list[Any]] = {}
        if cache is not None:
            found = {key: rows for key in keys if (rows := cache.get(key, now)) is not None}
        asked = [key for key in keys if key not in found]
        answered = self._asked(asked)
        retry = self._spec.retry
        for _ in range(0 if retry is None else retry.attempts):
            assert retry is not None
            missed = [key for key in asked if not answered[key]]
            if not missed:
                break
            time.sleep(retry.delay / 1000)
            answered.update(self._asked(missed))
        if cache is not None:
            self.context.metrics.count("lookup.hits", len(found))
            for key, rows in answered.items():
                cache.put(key, rows, now)
        self.context.metrics.count("lookup.asked", len(asked))
        return {**found, **answered}

    def _keep_up(self, table: WholeTable, now: int) -> None:
        """Read the table where that is due; when it cannot be read, what was kept is of no use either."""
        policy, read = self._spec.lookup.cache, self._read
        assert isinstance(policy, Reload)
        if read is not None and now < policy.following(*read):
            return
        kept: dict[Key, list[Any]] = {}
        kinds = [table.schema.types[i] for i in table.keys]
        for array in table.read(now):
            chosen, rows = self._shown(array)
            found = array.take(pa.array(chosen))
            columns = [internal_values(found.field(i), kind) for i, kind in zip(table.keys, kinds, strict=True)]
            for key, row in zip(zip(*columns, strict=True), rows, strict=True):
                kept.setdefault(key, []).append(row)
            self.context.metrics.count("lookup.loaded", len(array))
        self._kept, self._read = kept, (now if read is None else read[0], now)

    def _asked(self, keys: list[Key]) -> dict[Key, list[Any]]:
        """The rows of keys as the join shows them: converted, filtered, projected."""
        if not keys:
            return {}
        table = self._spec.lookup
        if not self._opened:
            table.lookup.open()
            self._opened = True
        pieces = [keys[i : i + table.most] for i in range(0, len(keys), table.most)]
        answers = self._at_once(pieces) if table.asynchronous else [table.lookup.find(piece) for piece in pieces]
        given: list[Sequence[Any]] = []
        owners: list[Key] = []
        for piece, answer in zip(pieces, answers, strict=True):
            for key in piece:
                found = answer.get(key, ())
                given += found
                owners += [key] * len(found)
        shown: dict[Key, list[Any]] = {key: [] for key in keys}
        columns = zip(self._kinds_found, zip(*given, strict=True), strict=True) if given else ()
        kept, rows = self._calculated(list(zip(*(kind.internals(each) for kind, each in columns), strict=True)))
        for place, row in zip(kept, rows, strict=True):
            shown[owners[place]].append(row)
        return shown

    def _at_once(self, pieces: Sequence[list[Key]]) -> list[Any]:
        """Several questions under way."""
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

    def _calculated(self, rows: list[tuple[Any, ...]]) -> tuple[Sequence[int], list[tuple[Any, ...]]]:
        places: Sequence[int] = range(len(rows))
        if not rows or (self._condition is None and self._projection is None):
            return places, rows
        return self._shown(array_of(rows, None, self._spec.lookup.schema))

    def _shown(self, array: pa.Array) -> tuple[Sequence[int], list[tuple[Any, ...]]]:
        """The rows that the join sees, and their places among those of the table."""
        schema = self._spec.lookup.schema
        places: Sequence[int] = range(len(array))
        if self._condition is not None:
            chosen = np.flatnonzero(self._condition.holds(self.frame(array, len(schema))))
            places, array = chosen.tolist(), array.take(pa.array(chosen))
        if self._projection is not None:
            columns = self._projection.columns(self.frame(array, len(schema)))
            array = struct_of(columns, None, self._spec.right, len(array))
        return places, tuples_of(array, self._spec.right)

    # ------------------------------------------------------------------------------------------------------- joining

    def _join(
        self,
        columns: LateRows,
        kinds: pa.Array | None,
        places: np.ndarray,
        keys: list[Key],
        answers: dict[Key, list[Any]],
    ) -> None:
        """`places` says which of the keys each row has, the number of keys for a row with none."""
        found = self._right_columns([row for key in keys for row in answers[key]])
        sizes = np.array([*(len(answers[key]) for key in keys), 0], np.int64)
        counts, firsts = sizes[places], (np.cumsum(sizes) - sizes)[places]
        every = np.arange(columns.size)
        left = np.repeat(every, counts)
        steps = np.arange(len(left)) - np.repeat(np.cumsum(counts) - counts, counts)
        right = np.repeat(firsts, counts) + steps
        if self._joined is not None and len(left):
            pairs = _pairs(columns, found, left, pa.array(right))
            holds = self._joined.holds(self.frame_over(pairs, len(left)))
            left, right = left[holds], right[holds]
        partners = pa.array(right)
        if self._spec.kind == "left":
            alone = np.setdiff1d(every, left)
            whole = np.concatenate([left, alone])
            order = np.argsort(whole, kind="stable")
            chosen = np.concatenate([right, np.zeros(len(alone), np.int64)])[order]
            left = whole[order]
            partners = pa.array(chosen, mask=np.isin(left, alone))
        told = None if kinds is None else kinds.take(pa.array(left))
        self.emit_late(_pairs(columns, found, left, partners), told)

    def _right_columns(self, rows: list[tuple[Any, ...]]) -> list[pa.Array]:
        """The columns of what was found; one row of nulls where nothing was, for places that point nowhere."""
        kinds = self._spec.right.types
        values = zip(*rows, strict=True) if rows else ((None,) for _ in kinds)
        return [column(list(each), kind) for each, kind in zip(values, kinds, strict=True)]

    def close(self) -> None:
        """The job is over: let go of threads and connections."""
        super().close()
        self.dispose()

    def dispose(self) -> None:
        """Let go of threads and connections."""
        super().dispose()
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)
        if self._opened:
            self._opened = False
            self._spec.lookup.lookup.close()


def _pairs(columns: LateRows, found: Sequence[pa.Array], left: np.ndarray, right: pa.Array) -> LateRows:
    """Rows, each beside one that was found for it."""
    once_each = len(left) == columns.size and bool((left == np.arange(columns.size)).all())
    mine = columns if once_each else Some(columns, left)
    return Beside(mine, Plain([each.take(right) for each in found], len(left)))


def distinct(columns: Sequence[pa.Array], kinds: Sequence[t.DataType]) -> tuple[np.ndarray, list[Key]]:
    """The keys that rows have, each once, and which of them each row has; a row with a NULL in its key has none."""
    codes = np.zeros(len(columns[0]), np.int64)
    valid = np.ones(len(codes), bool)
    parts: list[list[Any]] = []
    for each, kind in zip(columns, kinds, strict=True):
        own, values = _coded(each, kind)
        valid &= own >= 0
        codes = codes * max(len(values), 1) + np.maximum(own, 0)
        parts.append(values)
    found, inverse = np.unique(codes[valid], return_inverse=True)
    places = np.full(len(codes), len(found), np.int64)
    places[valid] = inverse
    chosen: list[list[Any]] = []
    for values in reversed(parts):
        found, rest = np.divmod(found, max(len(values), 1))
        chosen.append([values[i] for i in rest.tolist()])
    return places, list(zip(*reversed(chosen), strict=True))


def _coded(array: pa.Array, kind: t.DataType) -> tuple[np.ndarray, list[Any]]:
    """The distinct values of a column in the order in which they come, and which of them each row has; -1 for none."""
    if is_nested(kind):
        seen: dict[Any, int] = {}
        found = internal_values(array, kind)
        return np.array([-1 if v is None else seen.setdefault(v, len(seen)) for v in found], np.int64), list(seen)
    coded = array.dictionary_encode()
    return coded.indices.fill_null(-1).to_numpy().astype(np.int64), internal_values(coded.dictionary, kind)
