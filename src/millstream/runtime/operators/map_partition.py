"""A function of all records of a subtask, on arrays, that is called when the input has ended.

Promises: records are state until then, so a job that is killed or rescaled continues with those it has read.
Does not know: what the function computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.functions.partition import PartitionFunction
from millstream.runtime import rowwise
from millstream.runtime.batch import Batch
from millstream.runtime.column_chunks import ColumnChunks
from millstream.runtime.operator import Operator, OperatorContext, OperatorSpec
from millstream.runtime.vertex_blocks import to_numbers
from millstream.types.factory import TypeInformation


@dataclass(frozen=True)
class MapPartitionSpec(OperatorSpec):
    """A partition function; `inputs` are the types of its inputs, and `keys` the field of each that has its key."""

    function: PartitionFunction
    inputs: tuple[TypeInformation, ...]
    keys: tuple[str, ...]

    def build(self, context: OperatorContext) -> Operator:
        """Create the operator."""
        return MapPartitionOperator(context, self)


class MapPartitionOperator(Operator):
    """State: the chunks of each input."""

    def __init__(self, context: OperatorContext, spec: MapPartitionSpec) -> None:
        super().__init__(context)
        self._spec = spec
        self._chunks = [ColumnChunks(context, f"input{side}") for side in range(len(spec.inputs))]

    def begin_epoch(self) -> None:
        """Begin new chunks."""
        for chunks in self._chunks:
            chunks.begin_epoch()

    def on_batch(self, batch: Batch, side: int) -> None:
        """Keep the records, with the key as their first column."""
        array, names = batch.array(), self._names(side)
        self._chunks[side].put(**{name: array.field(name) for name in names})

    def _names(self, side: int) -> list[str]:
        key, names = self._spec.keys[side], self._spec.inputs[side].field_names  # type: ignore[attr-defined]
        return [key, *(name for name in names if name != key)]

    def _columns(self, side: int) -> Mapping[str, Any]:
        record_type = self._spec.inputs[side]
        empty = record_type.to_arrow([])
        batches = self._chunks[side].batches()
        columns = {}
        for name in self._names(side):
            arrays = [batch.column(name) for batch in batches] or [empty.field(name)]
            column = pa.concat_arrays(arrays)
            is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
            columns[name] = to_numbers(column, name) if is_number else column
        return columns

    def on_watermark(self, watermark: int) -> None:
        """Call the function at the end of the input, and emit its results."""
        if watermark == MAX_WATERMARK:
            inputs = [rowwise.call_user_code(self.context, self._columns, side) for side in range(len(self._chunks))]
            batches = iter(rowwise.call_user_code(self.context, self._spec.function.process, *inputs))
            while (columns := rowwise.call_user_code(self.context, next, batches, None)) is not None:
                self._emit(columns)
            for chunks in self._chunks:
                chunks.delete(chunks.keys())
        super().on_watermark(watermark)

    def _emit(self, columns: Mapping[str, Any]) -> None:
        record_type: Any = self.context.output_type
        arrays = []
        for name, field_type in zip(record_type.field_names, record_type.field_types, strict=True):
            column = columns[name]
            dtype = field_type.to_arrow([]).type
            arrays.append(column if isinstance(column, pa.Array) else pa.array(column, dtype))
        if len(arrays[0]):
            array = pa.StructArray.from_arrays(arrays, names=record_type.field_names)
            self.out.emit(Batch(record_type, array=array))
