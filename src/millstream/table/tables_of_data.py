"""Tables of data that a program holds: Python values, pandas, Arrow, Polars, DataFrames of Spark.

Promises: PyFlink's methods, and their relatives for other libraries. The data is part of the program.
Does not know: catalogs, statements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from millstream.connector.source import Source
from millstream.sql.catalog.catalog import StreamTable
from millstream.sql.columns import create_row_type_info
from millstream.sql.logical import nodes as l
from millstream.sql.logical.bind.queries import QueryBinder
from millstream.sql.physical.nodes import Operation
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t
from millstream.sql.types.changelog_mode import ChangelogMode
from millstream.table import arrow_data, bridging, spark_data
from millstream.table.expression import Expression
from millstream.table.expression.terms import fields_of_row
from millstream.table.planning_session import PlanningSession, unique_numbers
from millstream.table.stream_targets import project_to_row_type
from millstream.table.table import Table


class TablesOfData(PlanningSession):
    """The methods of `TableEnvironment` that create tables of data."""

    def from_elements(self, elements: Iterable[Any], schema: Any = None, verify_schema: bool = True) -> Table:
        """Create a table of Python values.

        Args:
            elements: Rows, tuples, lists or dicts, or expressions such as `row(1, "a")`; other values are rows of one
                column.
            schema: A row type, a data type for one column, or the names of the columns, which are `_1`, `_2`, ... if
                not given. Types that are not given are derived from the values.
            verify_schema: Accepted for PyFlink programs; values are always converted to the schema.

        Returns:
            The table.

        Raises:
            UserError: If a type cannot be derived.

        """
        rows = list(elements)
        if any(isinstance(row, Expression) for row in rows):
            return self._table_of_expressions(rows, schema)
        return self._table_of_rows(bridging.infer_row_type(rows, schema), rows)

    def _table_of_expressions(self, elements: Sequence[Any], schema: Any) -> Table:
        """Create a table of rows that are expressions, like VALUES."""
        values = s.Values(0, tuple(map(fields_of_row, elements)))
        plan = QueryBinder(self._session()).query(s.Query(0, values))
        if isinstance(schema, t.RowType):
            return Table(project_to_row_type(plan, schema), self)  # type: ignore[arg-type]
        names = [*(schema or ()), *(f"_{i + 1}" for i in range(len(schema or ()), len(plan.schema)))]
        return Table(l.project(plan, plan.refs(), names[: len(plan.schema)]), self)  # type: ignore[arg-type]

    def from_pandas(self, pdf: Any, schema: Any = None, splits_num: int = 1) -> Table:
        """Create a table of a pandas DataFrame.

        Dicts in a column are rows, lists are arrays. NaN is NULL. A timestamp with a time zone becomes a TIMESTAMP in
        UTC, as in PyFlink; declare the column as TIMESTAMP_LTZ to keep the instant.

        Args:
            pdf: The DataFrame; its index is not read.
            schema: A row type, data types, or the names of the columns. By default both come from the DataFrame.
            splits_num: Into how many splits the rows are divided, which can be read in parallel.

        Returns:
            The table.

        Raises:
            UserError: If a column does not fit the schema, or has no SQL type. It is also a TypeError.

        """
        row_type, table = arrow_data.read_pandas(pdf, schema, self._config.get_local_timezone())
        return self._table_of(row_type, arrow_data.create_source(row_type, table, splits_num))

    def from_arrow(self, data: Any, schema: Any = None, splits_num: int = 1) -> Table:
        """Create a table of Arrow data; PyFlink does not have this method.

        Columns are not copied if their Arrow types are those of the engine, as they are for numbers, texts, dates and
        timestamps. Unsigned integers become the next wider type, other types that SQL cannot represent are refused.

        Args:
            data: A pyarrow Table, RecordBatch or RecordBatchReader, or any object with Arrow's C stream, such as a
                Polars DataFrame, a DuckDB relation or a pandas DataFrame. A stream is read to its end at once.
            schema: A row type, data types, or the names of the columns. By default both come from the data.
            splits_num: Into how many splits the rows are divided, which can be read in parallel.

        Returns:
            The table.

        Raises:
            UserError: If a column does not fit the schema, or has no SQL type.

        """
        row_type, table = arrow_data.read_arrow(data, schema)
        return self._table_of(row_type, arrow_data.create_source(row_type, table, splits_num))

    def from_polars(self, frame: Any, schema: Any = None, splits_num: int = 1) -> Table:
        """Create a table of a Polars DataFrame or LazyFrame, which is collected; the same as `from_arrow` otherwise.

        Args:
            frame: The frame.
            schema: A row type, data types, or the names of the columns. By default both come from the frame.
            splits_num: Into how many splits the rows are divided, which can be read in parallel.

        Returns:
            The table.

        Raises:
            UserError: If a column does not fit the schema, or has no SQL type.

        """
        collected = frame.collect() if hasattr(frame, "collect") else frame
        row_type, table = arrow_data.read_arrow(collected, schema)
        return self._table_of(row_type, arrow_data.create_source(row_type, table, splits_num))

    def from_spark(self, frame: Any, path: str | None = None) -> Table:
        """Create a table of a bounded DataFrame of Spark; PyFlink does not have this method.

        The DataFrame is computed once, now. Its tasks write their partitions to files, which the tasks of jobs read, so
        rows do not pass the driver. A job that is restored in another process computes the DataFrame again; it
        continues where it stopped only if the DataFrame has the same partitions with the same rows in the same order.

        Args:
            frame: The DataFrame. Spark's TIMESTAMP becomes TIMESTAMP_LTZ(6), TIMESTAMP_NTZ becomes TIMESTAMP(6).
            path: A new directory that all workers can access, which is required on a cluster. It is not deleted. By
                default a temporary directory, which is deleted when the process ends.

        Returns:
            The table.

        Raises:
            UserError: If a column has no SQL type, the DataFrame is a stream, or Spark runs on a cluster and there is
                no path.

        """
        row_type, source = spark_data.read_spark(frame, path)
        return self._table_of(row_type, source)

    def _table_of_rows(self, row_type: t.RowType, rows: list[Any]) -> Table:
        return self._table_of(row_type, bridging.create_rows_source(create_row_type_info(row_type), rows))

    def _table_of(self, row_type: t.RowType, source: Source) -> Table:
        def create_scan(detail: str, schema: t.RowType, mode: ChangelogMode, keys: Any) -> Operation:
            return Operation("TableSourceScan", detail, schema, source=source, mode=mode, upsert_keys=keys)

        table = StreamTable(row_type, create_scan)
        return Table(l.Scan(row_type, table, (f"Unregistered_{next(unique_numbers)}",)), self)  # type: ignore[arg-type]
