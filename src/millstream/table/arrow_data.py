"""Tables from Arrow data, pandas and Polars, and results as Arrow data.

Promises: columns are converted as a whole; columns whose types agree are not copied. A type is mapped exactly, or the
data is refused. Types that a schema gives are not derived from the data.
Does not know: environments, jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from millstream.connectors.arrow import ArrowSource
from millstream.errors import UserError
from millstream.sql.arrow_exchange import (
    UnfitColumn,
    create_exchange_schema,
    export_column,
    find_sql_type_of_arrow,
    import_column,
)
from millstream.sql.columns import (
    DELETE,
    UPDATE_BEFORE,
    arrow_type,
    combine_columns,
    create_row_type_info,
    has_only_inserts,
    read_row_kinds,
    to_tuples,
)
from millstream.sql.types import data_types as t
from millstream.types.row import RowKind

_ROW_KINDS = pa.array([str(RowKind(number)) for number in range(4)], pa.string())


class WrongData(UserError, TypeError):
    """Data or a schema of a kind that tables cannot be created from; PyFlink raises TypeError."""


# -------------------------------------------------------------------------------------------------------------- schemas


def resolve_row_type(schema: Any, names: Sequence[str], derive: Callable[[int], t.DataType]) -> t.RowType:
    """Return the row type of data.

    Args:
        schema: A row type, data types, the names of columns, or None.
        names: The names of the columns of the data.
        derive: Returns the type of a column by its index; it is called for columns whose type is not given.

    Raises:
        WrongData: If the schema is something else, or has another number of columns.

    """
    if isinstance(schema, t.RowType):
        row = t.row_of(schema.names, schema.types, null=False)
    elif schema is None:
        row = t.row_of(names, [derive(i) for i in range(len(names))], null=False)
    elif isinstance(schema, list | tuple) and schema and all(isinstance(item, t.DataType) for item in schema):
        _check_width(len(schema), names)
        row = t.row_of(names, schema, null=False)
    elif isinstance(schema, list | tuple) and all(isinstance(item, str) for item in schema):
        _check_width(len(schema), names)
        row = t.row_of(schema, [derive(i) for i in range(len(names))], null=False)
    else:
        message = f"the schema must be a row type, a list of names or a list of data types, not {schema!r}"
        raise WrongData(message, hint="use DataTypes.ROW([DataTypes.FIELD('a', DataTypes.INT())])")
    _check_width(len(row), names)
    return row


def _check_width(width: int, names: Sequence[str]) -> None:
    if width != len(names):
        message = f"the schema has {width} columns, but the data has {len(names)}: {', '.join(names)}"
        raise WrongData(message)


# ----------------------------------------------------------------------------------------------------------- data in


def read_arrow(data: Any, schema: Any) -> tuple[t.RowType, pa.Table]:
    """Return the row type and the columns of Arrow data: a table, batches, or an object with a C stream or array.

    Raises:
        WrongData: If it is something else.
        UnknownArrowType: If no SQL type represents a column.
        UnfitColumn: If a column does not fit the schema.

    """
    table = _to_arrow_table(data)
    fields = list(table.schema)

    def derive(index: int) -> t.DataType:
        field = fields[index]
        return find_sql_type_of_arrow(field.type, field.name, nullable=field.nullable)

    row = resolve_row_type(schema, table.schema.names, derive)
    return row, _create_engine_table(table.columns, row)


def _to_arrow_table(data: Any) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data).read_all()
    if hasattr(data, "__arrow_c_array__"):
        return pa.Table.from_batches([pa.record_batch(data)])
    if isinstance(data, list | tuple) and data and all(isinstance(batch, pa.RecordBatch) for batch in data):
        return pa.Table.from_batches(data)
    message = f"{type(data).__name__} is not Arrow data"
    raise WrongData(
        message, hint="give a pyarrow Table, RecordBatch or RecordBatchReader, or an object with __arrow_c_stream__"
    )


def _create_engine_table(columns: Sequence[pa.ChunkedArray], row: t.RowType) -> pa.Table:
    """Return the columns in the engine's Arrow types."""
    converted = []
    for column, field in zip(columns, row.fields, strict=True):
        chunks = [import_column(chunk, field.data_type, field.name) for chunk in column.chunks]
        converted.append(pa.chunked_array(chunks, arrow_type(field.data_type)))
    return pa.Table.from_arrays(converted, names=row.names)


def read_pandas(frame: Any, schema: Any, zone: str) -> tuple[t.RowType, pa.Table]:
    """Return the row type and the columns of a DataFrame, as PyFlink reads it.

    NaN is NULL. A timestamp with a time zone is a TIMESTAMP in UTC unless the schema has TIMESTAMP_LTZ; for that type,
    timestamps without a time zone are in the session's time zone.

    Raises:
        WrongData: If it is no DataFrame.
        UnfitColumn: If a column does not fit the schema.

    """
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        message = f"from_pandas needs a pandas DataFrame, not {type(frame).__name__}"
        raise WrongData(message, hint="use from_elements for a list, and from_arrow for Arrow data")
    names = [str(name) for name in frame.columns]
    row = resolve_row_type(schema, names, lambda i: find_sql_type_of_arrow(_infer(frame, i), names[i], zones=False))
    columns = [
        _convert_pandas_column(frame.iloc[:, i], field.data_type, field.name, zone)
        for i, field in enumerate(row.fields)
    ]
    return row, pa.Table.from_arrays(columns, names=row.names)


def _infer(frame: Any, index: int) -> pa.DataType:
    """Return the Arrow type of a column of a DataFrame."""
    try:
        return pa.Schema.from_pandas(frame.iloc[:, [index]], preserve_index=False).field(0).type
    except pa.ArrowException as problem:
        message = f"the column '{frame.columns[index]}' has values of several types: {problem}"
        raise WrongData(message, hint="convert it, as in frame['name'].astype(str), or give a schema") from None


def _convert_pandas_column(series: Any, data_type: t.DataType, name: str, zone: str) -> pa.Array:
    from millstream.sql.pandas_columns import from_result  # pandas is loaded if it is needed

    try:
        column = from_result(series, data_type, zone)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as problem:
        raise UnfitColumn(name, series.dtype, data_type, str(problem)) from None
    if column.null_count and not data_type.null:
        raise UnfitColumn(name, series.dtype, data_type, f"{column.null_count} values are NULL")
    return column


def create_source(row: t.RowType, table: pa.Table, splits: int = 1) -> ArrowSource:
    """Return a source of the rows of a table in the engine's Arrow types."""
    if splits < 1:
        message = f"the number of splits must be at least 1, not {splits}"
        raise UserError(message)
    batches = table.to_batches() if len(row) else []
    chunks = [combine_columns(batch.columns, None, row, batch.num_rows) for batch in batches]
    return ArrowSource(chunks, create_row_type_info(row), splits)


# ---------------------------------------------------------------------------------------------------------- data out


def leave_batch(array: pa.Array, row: t.RowType, row_kind_column: str | None = None) -> pa.RecordBatch:
    """Convert rows of a result to a batch for other libraries, with a column of row kinds if it has a name."""
    columns = [export_column(array.field(i), data_type) for i, data_type in enumerate(row.types)]
    if row_kind_column is not None:
        columns.append(_ROW_KINDS.take(array.field(len(row)).fill_null(0)))
    return pa.RecordBatch.from_arrays(columns, schema=create_result_schema(row, row_kind_column))


def create_result_schema(row: t.RowType, row_kind_column: str | None = None) -> pa.Schema:
    """Return the Arrow schema of a result."""
    schema = create_exchange_schema(row)
    return schema if row_kind_column is None else schema.append(pa.field(row_kind_column, pa.string(), nullable=False))


def apply_changelog(changes: Sequence[pa.Array], row: t.RowType) -> list[pa.Array]:
    """Return the rows that remain after a changelog, in the order in which they were added.

    A row that is removed is the first of the equal rows."""
    width = len(row)
    if all(has_only_inserts(array, width) for array in changes):
        return list(changes)
    remaining: dict[tuple[Any, ...], list[tuple[int, int]]] = {}
    removed: dict[int, set[int]] = {}
    for index, array in enumerate(changes):
        for row_index, (values, kind) in enumerate(
            zip(to_tuples(array, row), read_row_kinds(array, width), strict=True)
        ):
            if kind not in (UPDATE_BEFORE, DELETE):
                remaining.setdefault(values, []).append((index, row_index))
                continue
            removed.setdefault(index, set()).add(row_index)
            if remaining.get(values):
                chunk, position = remaining[values].pop(0)
                removed.setdefault(chunk, set()).add(position)
    return [
        array.take(pa.array([i for i in range(len(array)) if i not in removed.get(index, ())], pa.int64()))
        for index, array in enumerate(changes)
    ]


def to_arrow_table(rows: Sequence[pa.Array], row: t.RowType) -> pa.Table:
    """Convert rows of a result to an Arrow table."""
    return pa.Table.from_batches([leave_batch(array, row) for array in rows], schema=create_exchange_schema(row))


def to_pandas_frame(rows: Sequence[pa.Array], row: t.RowType, zone: str) -> Any:
    """Convert rows of a result to a DataFrame; without rows, its columns have the type object, as in PyFlink."""
    import pandas as pd

    from millstream.sql.pandas_columns import to_series  # pandas is loaded if it is needed

    if not any(map(len, rows)):
        return pd.DataFrame.from_records([], columns=row.names)
    whole = pa.concat_arrays(list(rows))
    series = [to_series(whole.field(i), field.data_type, zone).rename(field.name) for i, field in enumerate(row.fields)]
    return pd.concat(series, axis=1)


class ArrowBatches:
    """Iterate over the batches of a result as the job emits them; a context manager that closes itself.

    Closing it cancels a job that still runs. It offers Arrow's C stream, so other libraries can read it.
    """

    def __init__(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch], close: Callable[[], None]) -> None:
        self._schema, self._batches, self._close = schema, batches, close

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the batches."""
        return self._schema

    def __iter__(self) -> ArrowBatches:
        return self

    def __next__(self) -> pa.RecordBatch:
        return next(self._batches)

    def __enter__(self) -> ArrowBatches:
        return self

    def __exit__(self, exc_type: object, exc_val: object, exc_tb: object) -> None:
        self.close()

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return pa.RecordBatchReader.from_batches(self._schema, self).__arrow_c_stream__(requested_schema)

    def close(self) -> None:
        """Stop reading; a job that still runs is cancelled."""
        self._close()
