"""Records of any type become rows of a table.

Promises: values are checked against the columns' types; a row keeps its kind of change. Columns that hold the same in
both types are taken over as they are.
Does not know: where records come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.formats.format_types import FieldSelection
from millstream.runtime.batch import NO_TIMESTAMP, Batch
from millstream.runtime.operator import Operator, OperatorContext
from millstream.sql.columns import arrow_type, row_type_info, struct_of
from millstream.sql.operators.spec import STATELESS, PlanContext, SqlOperatorSpec, StateTraits
from millstream.sql.types import data_types as t


@dataclass(frozen=True)
class EnterSpec(SqlOperatorSpec):
    """`wrapped` records are the only column; `timed` adds the record's timestamp as a last column. Where records have
    not all columns and fields of a table, `shown` is all of it."""

    schema: t.RowType
    wrapped: bool = False
    timed: bool = False
    shown: t.RowType | None = None

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Declare that no state is kept."""
        return STATELESS

    def build(self, context: OperatorContext) -> Operator:
        """The operator."""
        return EnterOperator(context, self)


class Entrance:
    """Makes rows of records, batch by batch."""

    def __init__(self, spec: EnterSpec) -> None:
        self._spec = spec
        width = len(spec.schema) - (1 if spec.timed else 0)
        self._inner = t.row_of(spec.schema.names[:width], spec.schema.types[:width], null=False)
        self._kind = row_type_info(self._inner)
        self._shown = self._inner if spec.shown is None else spec.shown
        self._read = _columns_reader(self._inner, self._shown)

    def array(self, batch: Batch) -> pa.Array:
        """The rows as columns."""
        array = self._columns(batch)
        if array is None:
            rows = batch.rows()
            array = self._kind.to_arrow([(row,) for row in rows] if self._spec.wrapped else list(rows))
            if self._shown is not self._inner:
                width = len(self._inner)
                columns = self._read([array.field(i) for i in range(width)], len(array))
                array = struct_of(columns or [], array.field(width), self._shown, len(array))
        if self._spec.timed:
            width = len(self._inner)
            times = np.array(batch.times(), dtype=np.int64)
            moments = (
                pa.array(times, mask=times == NO_TIMESTAMP).cast(pa.timestamp("ms")).cast(pa.timestamp("ms", "UTC"))
            )
            columns = [array.field(i) for i in range(width)]
            array = struct_of([*columns, moments], array.field(width), self._spec.schema, len(array))
        return array

    def _columns(self, batch: Batch) -> pa.Array | None:
        """The rows of a columnar batch; None where its columns are not those of the table."""
        if self._spec.wrapped or not batch.columnar or getattr(batch.kind, "field_names", None) != self._inner.names:
            return None
        array, count = batch.array(), len(self._inner)
        if array.null_count or array.type.num_fields != count + 1:
            return None
        columns = self._read([array.field(i) for i in range(count)], len(array))
        return None if columns is None else struct_of(columns, array.field(count), self._shown, len(array))


class EnterOperator(Operator):
    """Stateless."""

    def __init__(self, context: OperatorContext, spec: EnterSpec) -> None:
        super().__init__(context)
        self._entrance = Entrance(spec)

    def on_batch(self, batch: Batch, side: int) -> None:
        """Convert."""
        self.out.emit(Batch(self.context.output_type, array=self._entrance.array(batch)))


def taken_over(arrays: Sequence[pa.Array], kinds: Sequence[t.DataType]) -> list[pa.Array] | None:
    """Columns of records as columns of a table, without a look at their values; None where that cannot be."""
    found = [_reader(kind, kind)(array) for array, kind in zip(arrays, kinds, strict=False)]
    return None if len(found) != len(kinds) or any(each is None for each in found) else found


def narrowed(row: t.RowType, wanted: FieldSelection) -> t.RowType:
    """The row type with some of its fields only, and some of theirs."""
    kinds = []
    for place, part in wanted:
        kind = row.types[place]
        kinds.append(narrowed(kind, part) if part is not None and isinstance(kind, t.RowType) else kind)
    return t.row_of([row.names[place] for place, _ in wanted], kinds, null=row.null)


def _columns_reader(have: t.RowType, want: t.RowType) -> Callable[[Sequence[pa.Array], int], list[pa.Array] | None]:
    """How columns of one row type become those of another, by name and without a look at their values; NULL where there
    are none. The answer is None where that cannot be."""
    places = {name: place for place, name in enumerate(have.names)}
    plan: list[tuple[int | None, Any]] = []
    for name, kind in zip(want.names, want.types, strict=True):
        place = places.get(name)
        plan.append((None, _nulls(arrow_type(kind))) if place is None else (place, _reader(have.types[place], kind)))

    def read(arrays: Sequence[pa.Array], count: int) -> list[pa.Array] | None:
        made = [how(count) if place is None else how(arrays[place]) for place, how in plan]
        return None if any(each is None for each in made) else made

    return read


def _nulls(kind: pa.DataType) -> Callable[[int], pa.Array]:
    """Makes columns of NULL, all of them parts of one."""
    longest = pa.nulls(0, kind)

    def some(count: int) -> pa.Array:
        nonlocal longest
        if len(longest) < count:
            longest = pa.nulls(count, kind)
        return longest.slice(0, count)

    return some


def _reader(have: t.DataType, want: t.DataType) -> Callable[[pa.Array], pa.Array | None]:
    wanted = arrow_type(want)
    if not isinstance(have, t.RowType) or not isinstance(want, t.RowType):
        return lambda array: array if array.type == wanted else None
    children, count, fields = _columns_reader(have, want), len(have), list(wanted)

    def read(array: pa.Array) -> pa.Array | None:
        if array.type == wanted:
            return array
        if not pa.types.is_struct(array.type):
            return None
        made = children([array.field(i) for i in range(count)], len(array))
        mask = array.is_null() if array.null_count else None
        return None if made is None else pa.StructArray.from_arrays(made, fields=fields, mask=mask)

    return read
