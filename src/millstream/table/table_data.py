"""Results of tables as data of other libraries: pandas, Arrow, Polars, Spark.

Promises: each method runs the query once; results travel as columns.
Does not know: how queries are planned and executed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.sql.logical import nodes as l
from millstream.table import spark_data
from millstream.table.arrow_data import ArrowBatches
from millstream.table.table_descriptor import TableDescriptor

if TYPE_CHECKING:
    from millstream.table.table_environment import TableEnvironment


class TableData:
    """The methods of `Table` that return its rows as data of other libraries."""

    _plan: l.Plan
    _t_env: TableEnvironment

    def to_pandas(self) -> Any:
        """Run the query to its end and return the final rows.

        Returns:
            A pandas DataFrame. If the table has updates, the changelog is applied first.

        """
        return self._t_env._to_pandas(self._plan)

    def to_arrow(self) -> pa.Table:
        """Run the query to its end and return the final rows; PyFlink does not have this method.

        Returns:
            A pyarrow Table. If the table has updates, the changelog is applied first. The fields of rows have their
            names, VARIANT is JSON.

        """
        return self._t_env._to_arrow(self._plan)

    def to_polars(self) -> Any:
        """Run the query to its end and return the final rows as a Polars DataFrame; it needs the package polars.

        Returns:
            A Polars DataFrame. If the table has updates, the changelog is applied first.

        """
        import polars

        return polars.DataFrame(self.to_arrow())

    def to_arrow_batches(self, row_kind_column: str | None = None) -> ArrowBatches:
        """Run the query and iterate over its rows while the job runs; PyFlink does not have this method.

        It is `execute().collect()` with batches of columns instead of rows. The job waits while many batches are
        unread, and is cancelled when the iterator is closed.

        Args:
            row_kind_column: The name of a column for the row kind of each row: +I, -U, +U or -D. It is required if the
                table emits updates.

        Returns:
            An iterator of pyarrow RecordBatches, which is a context manager.

        Raises:
            SqlValidationError: If the table emits updates and `row_kind_column` is not given.

        Example:
            >>> from millstream.table import EnvironmentSettings, TableEnvironment
            >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
            >>> table = t_env.from_elements([(1, "a"), (2, "b")], ["id", "name"])
            >>> with table.to_arrow_batches() as batches:
            ...     print(sum(batch.num_rows for batch in batches))
            2

        """
        return self._t_env._to_arrow_batches(self._plan, row_kind_column)

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """Run the query to its end and offer the final rows as Arrow's C stream, so other libraries can read them."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_spark(self, session: Any, path: str | None = None) -> Any:
        """Run the query to its end and return the rows as a DataFrame of Spark; PyFlink does not have this method.

        The job writes Parquet files, which Spark reads when the DataFrame is used; rows do not pass the driver.

        Args:
            session: The session of Spark that reads the files.
            path: A new directory that all workers can access, which is required on a cluster. It is not deleted. By
                default a temporary directory, which is deleted when the process ends.

        Returns:
            A DataFrame. TIMESTAMP_LTZ becomes Spark's TIMESTAMP, TIMESTAMP becomes TIMESTAMP_NTZ.

        Raises:
            UserError: If a column has a type that Spark does not have, the table emits updates, or Spark runs on a
                cluster and there is no path.

        """
        row_type = self._plan.schema
        spark_schema = spark_data.create_spark_schema(row_type)
        directory = spark_data.create_directory(path, session)
        descriptor = TableDescriptor.for_connector("filesystem").option("path", directory).format("parquet").build()
        self._t_env._create_pipeline(self._plan, descriptor, False).execute().wait()
        return session.read.schema(spark_schema).parquet(directory)
