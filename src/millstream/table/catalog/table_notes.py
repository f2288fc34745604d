"""Partitions and statistics of catalog tables, which are registered beside their definitions.

Promises: PyFlink's methods. Partitions and statistics are renamed and dropped with their table.
Does not know: files. A registered partition need not have any, and the optimizer does not use these statistics."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from millstream.sql.catalog import catalog as c
from millstream.sql.errors import CatalogError
from millstream.table.catalog.objects import CatalogPartition, CatalogPartitionSpec
from millstream.table.catalog.paths import ObjectPath
from millstream.table.catalog.statistics import CatalogColumnStatistics, CatalogTableStatistics


class CatalogTableNotes(ABC):
    """The methods of a Catalog for partitions and statistics."""

    @abstractmethod
    def _table_with_notes(self, table_path: ObjectPath) -> tuple[c.CatalogObject, c.TableNotes]:
        """Return the definition of a table, which must exist, and its registered partitions and statistics."""

    @abstractmethod
    def table_exists(self, table_path: ObjectPath) -> bool:
        """Return whether there is a table or view of this path."""

    # ----------------------------------------------------------------------------------------------------- partitions

    def _resolve_spec(self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec) -> c.PartitionSpec:
        table, _ = self._table_with_notes(table_path)
        keys = table.partitions if isinstance(table, c.TableDefinition) else ()
        spec = partition_spec.get_partition_spec()
        if not keys:
            msg = f"table '{table_path}' is not partitioned"
            raise CatalogError(msg)
        if set(spec) != set(keys):
            msg = f"table '{table_path}' is partitioned by {', '.join(keys)}, not by {', '.join(spec)}"
            raise CatalogError(msg)
        return frozenset((key, str(value)) for key, value in spec.items())

    def list_partitions(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec | None = None
    ) -> list[CatalogPartitionSpec]:
        """Return the registered partitions of a table.

        Args:
            table_path: The table.
            partition_spec: Values of some partition keys; only partitions with these values are returned.

        Raises:
            CatalogError: If the table does not exist or is not partitioned.

        """
        table, notes = self._table_with_notes(table_path)
        if not (isinstance(table, c.TableDefinition) and table.partitions):
            msg = f"table '{table_path}' is not partitioned"
            raise CatalogError(msg)
        selected = {} if partition_spec is None else partition_spec.get_partition_spec()
        registered = sorted(tuple((key, dict(spec)[key]) for key in table.partitions) for spec in notes.partitions)
        return [CatalogPartitionSpec(dict(spec)) for spec in registered if selected.items() <= dict(spec).items()]

    def get_partition(self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec) -> CatalogPartition:
        """Return the properties and the comment of a partition.

        Raises:
            CatalogError: If the table or the partition does not exist.

        """
        options, comment = self._partition(table_path, partition_spec)
        return CatalogPartition(options, comment)

    def _partition(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec
    ) -> tuple[dict[str, str], str | None]:
        spec = self._resolve_spec(table_path, partition_spec)
        partitions = self._table_with_notes(table_path)[1].partitions
        if spec not in partitions:
            msg = f"table '{table_path}' has no partition {partition_spec.get_partition_spec()}"
            raise CatalogError(msg)
        return partitions[spec]

    def partition_exists(self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec) -> bool:
        """Return whether a partition is registered."""
        if not self.table_exists(table_path):
            return False
        spec = frozenset((key, str(value)) for key, value in partition_spec.get_partition_spec().items())
        return spec in self._table_with_notes(table_path)[1].partitions

    def create_partition(
        self,
        table_path: ObjectPath,
        partition_spec: CatalogPartitionSpec,
        partition: CatalogPartition,
        ignore_if_exists: bool,
    ) -> None:
        """Register a partition.

        Args:
            table_path: The table.
            partition_spec: The values of all partition keys.
            partition: Its properties and comment.
            ignore_if_exists: Whether an existing partition is left as it is.

        Raises:
            CatalogError: If the partition exists and `ignore_if_exists` is False, or the table is not partitioned by
                these keys.

        """
        spec, notes = self._resolve_spec(table_path, partition_spec), self._table_with_notes(table_path)[1]
        if spec in notes.partitions:
            if ignore_if_exists:
                return
            msg = f"table '{table_path}' already has a partition {partition_spec.get_partition_spec()}"
            raise CatalogError(msg)
        notes.partitions[spec] = (partition.get_properties(), partition.get_comment())

    def drop_partition(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec, ignore_if_not_exists: bool
    ) -> None:
        """Remove a partition and its statistics from the catalog.

        Args:
            table_path: The table.
            partition_spec: The values of all partition keys.
            ignore_if_not_exists: Whether a missing partition is not an error.

        Raises:
            CatalogError: If the partition does not exist and `ignore_if_not_exists` is False.

        """
        if ignore_if_not_exists and not self.partition_exists(table_path, partition_spec):
            return
        self._partition(table_path, partition_spec)
        spec, notes = self._resolve_spec(table_path, partition_spec), self._table_with_notes(table_path)[1]
        del notes.partitions[spec]
        notes.statistics.pop(spec, None)
        notes.column_statistics.pop(spec, None)

    def alter_partition(
        self,
        table_path: ObjectPath,
        partition_spec: CatalogPartitionSpec,
        new_partition: CatalogPartition,
        ignore_if_not_exists: bool,
    ) -> None:
        """Replace the properties and the comment of a partition.

        Args:
            table_path: The table.
            partition_spec: The values of all partition keys.
            new_partition: The new properties and comment.
            ignore_if_not_exists: Whether a missing partition is not an error.

        Raises:
            CatalogError: If the partition does not exist and `ignore_if_not_exists` is False.

        """
        if ignore_if_not_exists and not self.partition_exists(table_path, partition_spec):
            return
        self._partition(table_path, partition_spec)
        notes = self._table_with_notes(table_path)[1]
        notes.partitions[self._resolve_spec(table_path, partition_spec)] = (
            new_partition.get_properties(),
            new_partition.get_comment(),
        )

    # ----------------------------------------------------------------------------------------------------- statistics

    def get_table_statistics(self, table_path: ObjectPath) -> CatalogTableStatistics:
        """Return the statistics of a table; unknown values if none are registered."""
        return self._get_statistics(table_path, None)

    def get_table_column_statistics(self, table_path: ObjectPath) -> CatalogColumnStatistics:
        """Return the column statistics of a table; none if none are registered."""
        return self._get_column_statistics(table_path, None)

    def get_partition_statistics(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec
    ) -> CatalogTableStatistics:
        """Return the statistics of a partition; unknown values if none are registered."""
        self._partition(table_path, partition_spec)
        return self._get_statistics(table_path, self._resolve_spec(table_path, partition_spec))

    def get_partition_column_statistics(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec
    ) -> CatalogColumnStatistics:
        """Return the column statistics of a partition; none if none are registered."""
        self._partition(table_path, partition_spec)
        return self._get_column_statistics(table_path, self._resolve_spec(table_path, partition_spec))

    def bulk_get_partition_statistics(
        self, table_path: ObjectPath, partition_specs: Sequence[CatalogPartitionSpec]
    ) -> list[CatalogTableStatistics]:
        """Return the statistics of several partitions, in their order."""
        return [self.get_partition_statistics(table_path, spec) for spec in partition_specs]

    def bulk_get_partition_column_statistics(
        self, table_path: ObjectPath, partition_specs: Sequence[CatalogPartitionSpec]
    ) -> list[CatalogColumnStatistics]:
        """Return the column statistics of several partitions, in their order."""
        return [self.get_partition_column_statistics(table_path, spec) for spec in partition_specs]

    def _get_statistics(self, table_path: ObjectPath, spec: c.PartitionSpec | None) -> CatalogTableStatistics:
        statistics = self._table_with_notes(table_path)[1].statistics.get(spec)
        return (
            statistics.copy()
            if isinstance(statistics, CatalogTableStatistics)
            else CatalogTableStatistics.UNKNOWN.copy()
        )

    def _get_column_statistics(self, table_path: ObjectPath, spec: c.PartitionSpec | None) -> CatalogColumnStatistics:
        statistics = self._table_with_notes(table_path)[1].column_statistics.get(spec)
        return statistics.copy() if isinstance(statistics, CatalogColumnStatistics) else CatalogColumnStatistics({})

    def alter_table_statistics(
        self, table_path: ObjectPath, table_statistics: CatalogTableStatistics, ignore_if_not_exists: bool
    ) -> None:
        """Register the statistics of a table.

        Args:
            table_path: The table.
            table_statistics: The statistics.
            ignore_if_not_exists: Whether a missing table is not an error.

        """
        if self.table_exists(table_path) or not ignore_if_not_exists:
            self._table_with_notes(table_path)[1].statistics[None] = table_statistics.copy()

    def alter_table_column_statistics(
        self, table_path: ObjectPath, column_statistics: CatalogColumnStatistics, ignore_if_not_exists: bool
    ) -> None:
        """Register the column statistics of a table.

        Args:
            table_path: The table.
            column_statistics: The statistics.
            ignore_if_not_exists: Whether a missing table is not an error.

        """
        if self.table_exists(table_path) or not ignore_if_not_exists:
            self._table_with_notes(table_path)[1].column_statistics[None] = column_statistics.copy()

    def alter_partition_statistics(
        self,
        table_path: ObjectPath,
        partition_spec: CatalogPartitionSpec,
        partition_statistics: CatalogTableStatistics,
        ignore_if_not_exists: bool,
    ) -> None:
        """Register the statistics of a partition.

        Args:
            table_path: The table.
            partition_spec: The values of all partition keys.
            partition_statistics: The statistics.
            ignore_if_not_exists: Whether a missing partition is not an error.

        """
        if self.partition_exists(table_path, partition_spec) or not ignore_if_not_exists:
            self._partition(table_path, partition_spec)
            spec = self._resolve_spec(table_path, partition_spec)
            self._table_with_notes(table_path)[1].statistics[spec] = partition_statistics.copy()

    def alter_partition_column_statistics(
        self,
        table_path: ObjectPath,
        partition_spec: CatalogPartitionSpec,
        column_statistics: CatalogColumnStatistics,
        ignore_if_not_exists: bool,
    ) -> None:
        """Register the column statistics of a partition.

        Args:
            table_path: The table.
            partition_spec: The values of all partition keys.
            column_statistics: The statistics.
            ignore_if_not_exists: Whether a missing partition is not an error.

        """
        if self.partition_exists(table_path, partition_spec) or not ignore_if_not_exists:
            self._partition(table_path, partition_spec)
            spec = self._resolve_spec(table_path, partition_spec)
            self._table_with_notes(table_path)[1].column_statistics[spec] = column_statistics.copy()
