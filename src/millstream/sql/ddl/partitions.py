"""ALTER TABLE ... ADD PARTITION and DROP PARTITION: partitions that the catalog is told of.

Promises: all of the partitions of a statement are added or dropped, or none.
Does not know: files; those of a partition stay where they are."""

from __future__ import annotations

from millstream.sql.catalog.catalog import PartitionSpec, TableDefinition, TableNotes
from millstream.sql.ddl.answers import OK, Answer
from millstream.sql.errors import CatalogError, SqlValidationError, nearest
from millstream.sql.syntax import tree as s


def alter(node: s.Alter, name: str, table: TableDefinition, notes: TableNotes) -> Answer:
    """Add or drop partitions."""
    lenient, given = node.arguments
    known = dict(notes.partitions)
    for part in given:
        spec = spec_of(name, table, part)
        if node.action == "ADD PARTITIONS":
            if spec in known and not lenient:
                message = f"there is a partition {shown(table, spec)} of '{name}' already"
                raise CatalogError(message, at=part.at, hint="say IF NOT EXISTS")
            known.setdefault(spec, (dict(part.options), None))
            continue
        if spec not in known and not lenient:
            message = f"no partition {shown(table, spec)} was added to '{name}'"
            hint = "partitions that are there because of their files go with their files"
            raise CatalogError(message, at=part.at, hint=hint)
        known.pop(spec, None)
    notes.partitions = known
    return OK


def spec_of(name: str, table: TableDefinition, part: s.PartitionDef) -> PartitionSpec:
    """The columns and values of a partition, all of those the table is partitioned by."""
    values = literals(part.spec, part.at)
    if not table.partitions:
        message = f"table '{name}' is not partitioned"
        raise CatalogError(message, at=part.at)
    for key in values:
        if key not in table.partitions:
            message = f"'{key}' is no partition column of '{name}'"
            raise SqlValidationError(message, at=part.at, hint=nearest(key, table.partitions))
    missing = [key for key in table.partitions if key not in values]
    if missing:
        message = f"the partition has no value for {', '.join(missing)}"
        raise SqlValidationError(message, at=part.at)
    return frozenset(values.items())


def literals(spec: tuple[tuple[str, s.Expr | None], ...], at: int | None) -> dict[str, str]:
    """The values of a specification as text."""
    made: dict[str, str] = {}
    for key, value in spec:
        if not isinstance(value, s.Literal):
            message = f"the value of '{key}' must be a literal"
            raise SqlValidationError(message, at=at)
        made[key] = str(value.value)
    return made


def shown(table: TableDefinition, spec: PartitionSpec) -> str:
    """A partition as `key=value/key=value`."""
    values = dict(spec)
    return "/".join(f"{key}={values[key]}" for key in table.partitions)
