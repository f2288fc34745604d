"""What a catalog is told of its tables beside their definitions: partitions and statistics.

Promises: PyFlink's methods; what is told of a table goes with the table.
Does not know: files; a partition that is told of need not have any, and statistics decide nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from millstream.sql.catalog import catalog as c
from millstream.sql.errors import CatalogError
from millstream.table.catalog.objects import CatalogPartition, CatalogPartitionSpec
from millstream.table.catalog.paths import ObjectPath
from millstream.table.catalog.statistics import CatalogColumnStatistics, CatalogTableStatistics


class CatalogTableNotes(ABC):
    """The part of a Catalog that is about partitions and statistics."""

    @abstractmethod
    def _told(self, table_path: ObjectPath) -> tuple[c.CatalogObject, c.TableNotes]:
        """A table that must exist, and what is told of it."""

    @abstractmethod
    def table_exists(self, table_path: ObjectPath) -> bool:
        """Whether there is such a table."""

    # ----------------------------------------------------------------------------------------------------- partitions

    def _spec(self, table_path: ObjectPath, given: CatalogPartitionSpec) -> c.PartitionSpec:
        table, _ = self._told(table_path)
        keys = table.partitions if isinstance(table, c.TableDefinition) else ()
        spec = given.get_partition_spec()
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
        """The partitions that were told of, those that a part of a specification selects."""
        table, notes = self._told(table_path)
        if not (isinstance(table, c.TableDefinition) and table.partitions):
            msg = f"table '{table_path}' is not partitioned"
            raise CatalogError(msg)
        wanted = {} if partition_spec is None else partition_spec.get_partition_spec()
        found = sorted(tuple((key, dict(spec)[key]) for key in table.partitions) for spec in notes.partitions)
        return [CatalogPartitionSpec(dict(each)) for each in found if wanted.items() <= dict(each).items()]

    def get_partition(self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec) -> CatalogPartition:
        """A partition that was told of."""
        options, comment = self._partition(table_path, partition_spec)
        return CatalogPartition(options, comment)

    def _partition(self, table_path: ObjectPath, given: CatalogPartitionSpec) -> tuple[dict[str, str], str | None]:
        spec = self._spec(table_path, given)
        known = self._told(table_path)[1].partitions
        if spec not in known:
            msg = f"table '{table_path}' has no partition {given.get_partition_spec()}"
            raise CatalogError(msg)
        return known[spec]

    def partition_exists(self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec) -> bool:
        """Whether a partition was told of."""
        if not self.table_exists(table_path):
            return False
        wanted = frozenset((key, str(value)) for key, value in partition_spec.get_partition_spec().items())
        return wanted in self._told(table_path)[1].partitions

    def create_partition(
        self,
        table_path: ObjectPath,
        partition_spec: CatalogPartitionSpec,
        partition: CatalogPartition,
        ignore_if_exists: bool,
    ) -> None:
        """Tell of a partition."""
        spec, notes = self._spec(table_path, partition_spec), self._told(table_path)[1]
        if spec in notes.partitions:
            if ignore_if_exists:
                return
            msg = f"table '{table_path}' has a partition {partition_spec.get_partition_spec()} already"
            raise CatalogError(msg)
        notes.partitions[spec] = (partition.get_properties(), partition.get_comment())

    def drop_partition(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec, ignore_if_not_exists: bool
    ) -> None:
        """Forget a partition, and what is told of it."""
        if ignore_if_not_exists and not self.partition_exists(table_path, partition_spec):
            return
        self._partition(table_path, partition_spec)
        spec, notes = self._spec(table_path, partition_spec), self._told(table_path)[1]
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
        """Put other properties under a partition."""
        if ignore_if_not_exists and not self.partition_exists(table_path, partition_spec):
            return
        self._partition(table_path, partition_spec)
        told = (new_partition.get_properties(), new_partition.get_comment())
        self._told(table_path)[1].partitions[self._spec(table_path, partition_spec)] = told

    # ----------------------------------------------------------------------------------------------------- statistics

    def get_table_statistics(self, table_path: ObjectPath) -> CatalogTableStatistics:
        """What was told of a table's size; all unknown where nothing was."""
        return self._statistics(table_path, None)

    def get_table_column_statistics(self, table_path: ObjectPath) -> CatalogColumnStatistics:
        """What was told of a table's columns."""
        return self._column_statistics(table_path, None)

    def get_partition_statistics(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec
    ) -> CatalogTableStatistics:
        """What was told of a partition's size."""
        self._partition(table_path, partition_spec)
        return self._statistics(table_path, self._spec(table_path, partition_spec))

    def get_partition_column_statistics(
        self, table_path: ObjectPath, partition_spec: CatalogPartitionSpec
    ) -> CatalogColumnStatistics:
        """What was told of a partition's columns."""
        self._partition(table_path, partition_spec)
        return self._column_statistics(table_path, self._spec(table_path, partition_spec))

    def bulk_get_partition_statistics(
        self, table_path: ObjectPath, partition_specs: Sequence[CatalogPartitionSpec]
    ) -> list[CatalogTableStatistics]:
        """What was told of the sizes of several partitions."""
        return [self.get_partition_statistics(table_path, each) for each in partition_specs]

    def bulk_get_partition_column_statistics(
        self, table_path: ObjectPath, partition_specs: Sequence[CatalogPartitionSpec]
    ) -> list[CatalogColumnStatistics]:
        """What was told of the columns of several partitions."""
        return [self.get_partition_column_statistics(table_path, each) for each in partition_specs]

    def _statistics(self, table_path: ObjectPath, spec: c.PartitionSpec | None) -> CatalogTableStatistics:
        found = self._told(table_path)[1].statistics.get(spec)
        return found.copy() if isinstance(found, CatalogTableStatistics) else CatalogTableStatistics.UNKNOWN.copy()

    def _column_statistics(self, table_path: ObjectPath, spec: c.PartitionSpec | None) -> CatalogColumnStatistics:
        found = self._told(table_path)[1].column_statistics.get(spec)
        return found.copy() if isinstance(found, CatalogColumnStatistics) else CatalogColumnStatistics({})

    def alter_table_statistics(
        self, table_path: ObjectPath, table_statistics: CatalogTableStatistics, ignore_if_not_exists: bool
    ) -> None:
        """Tell of a table's size."""
        if self.table_exists(table_path) or not ignore_if_not_exists:
            self._told(table_path)[1].statistics[None] = table_statistics.copy()

    def alter_table_column_statistics(
        self, table_path: ObjectPath, column_statistics: CatalogColumnStatistics, ignore_if_not_exists: bool
    ) -> None:
        """Tell of a table's columns."""
        if self.table_exists(table_path) or not ignore_if_not_exists:
            self._told(table_path)[1].column_statistics[None] = column_statistics.copy()

    def alter_partition_statistics(
        self,
        table_path: ObjectPath,
        partition_spec: CatalogPartitionSpec,
        partition_statistics: CatalogTableStatistics,
        ignore_if_not_exists: bool,
    ) -> None:
        """Tell of a partition's size."""
        if self.partition_exists(table_path, partition_spec) or not ignore_if_not_exists:
            self._partition(table_path, partition_spec)
            spec = self._spec(table_path, partition_spec)
            self._told(table_path)[1].statistics[spec] = partition_statistics.copy()

    def alter_partition_column_statistics(
        self,
        table_path: ObjectPath,
        partition_spec: CatalogPartitionSpec,
        column_statistics: CatalogColumnStatistics,
        ignore_if_not_exists: bool,
    ) -> None:
        """Tell of a partition's columns."""
        if self.partition_exists(table_path, partition_spec) or not ignore_if_not_exists:
            self._partition(table_path, partition_spec)
            spec = self._spec(table_path, partition_spec)
            self._told(table_path)[1].column_statistics[spec] = column_statistics.copy()
