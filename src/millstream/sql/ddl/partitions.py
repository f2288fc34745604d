"""ALTER TABLE ... ADD PARTITION and DROP PARTITION: partitions that are registered in the catalog.

Promises: all partitions of a statement are added or dropped, or none.
Does not know: files; those of a dropped partition stay."""

from __future__ import annotations

from millstream.sql.catalog.catalog import PartitionSpec, TableDefinition, TableNotes
from millstream.sql.ddl.results import OK, StatementResult
from millstream.sql.errors import CatalogError, SqlValidationError, nearest
from millstream.sql.syntax import tree as s


def alter_partitions(
    action: s.AddPartitions | s.DropPartitions, name: str, table: TableDefinition, notes: TableNotes
) -> StatementResult:
    """Add or drop partitions."""
    registered = dict(notes.partitions)
    for partition in action.partitions:
        spec = read_partition(name, table, partition)
        if isinstance(action, s.AddPartitions):
            if spec in registered and not action.if_not_exists:
                message = f"partition {format_partition(table, spec)} of table '{name}' already exists"
                raise CatalogError(message, at=partition.at, hint="write IF NOT EXISTS")
            registered.setdefault(spec, (dict(partition.options), None))
            continue
        if spec not in registered and not action.if_exists:
            message = f"partition {format_partition(table, spec)} is not registered for table '{name}'"
            hint = "partitions that exist only as files are dropped by removing their files"
            raise CatalogError(message, at=partition.at, hint=hint)
        registered.pop(spec, None)
    notes.partitions = registered
    return OK


def read_partition(name: str, table: TableDefinition, partition: s.PartitionDef) -> PartitionSpec:
    """Return the columns and values of a partition; there must be one value for each partition column."""
    values = read_literals(partition.spec, partition.at)
    if not table.partitions:
        message = f"table '{name}' is not partitioned"
        raise CatalogError(message, at=partition.at)
    for key in values:
        if key not in table.partitions:
            message = f"'{key}' is not a partition column of '{name}'"
            raise SqlValidationError(message, at=partition.at, hint=nearest(key, table.partitions))
    missing = [key for key in table.partitions if key not in values]
    if missing:
        message = f"the partition has no value for {', '.join(missing)}"
        raise SqlValidationError(message, at=partition.at)
    return frozenset(values.items())


def read_literals(spec: tuple[tuple[str, s.Expr | None], ...], at: int | None) -> dict[str, str]:
    """Return the values of a partition specification as text."""
    values: dict[str, str] = {}
    for key, value in spec:
        if not isinstance(value, s.Literal):
            message = f"the value of '{key}' must be a literal"
            raise SqlValidationError(message, at=at)
        values[key] = str(value.value)
    return values


def format_partition(table: TableDefinition, spec: PartitionSpec) -> str:
    """Return a partition as `key=value/key=value`."""
    values = dict(spec)
    return "/".join(f"{key}={values[key]}" for key in table.partitions)
