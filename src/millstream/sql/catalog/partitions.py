"""The partitions of a table: SHOW PARTITIONS.

Promises: for a table whose connector keeps partitions in directories, the directories that exist now are listed in
order, together with the partitions that were added to the catalog.
Does not know: how partitions are read or written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote

from millstream.sql.catalog.catalog import TableDefinition
from millstream.sql.errors import CatalogError, SqlNotSupported, SqlValidationError, nearest


def list_partitions(
    name: str, table: TableDefinition, spec: Mapping[str, str], at: int | None, registered: Sequence[str] = ()
) -> list[str]:
    """Return the partitions that a specification selects, as `key=value/key=value`; `registered` are those of the
    catalog."""
    if not table.partitions:
        message = f"table '{name}' is not partitioned"
        raise CatalogError(message, at=at)
    for key in spec:
        if key not in table.partitions:
            message = f"'{key}' is not a partition column of '{name}'"
            raise SqlValidationError(message, at=at, hint=nearest(key, table.partitions))
    path = table.options.get("path")
    if table.options.get("connector") != "filesystem" or path is None:
        if registered or table.options.get("connector") not in ("delta", "iceberg"):
            return sorted(registered)
        message = f"the connector of '{name}' cannot list its partitions, and none were added to the catalog"
        raise SqlNotSupported(message, at=at, hint="add partitions with ALTER TABLE ... ADD PARTITION")
    scheme, colon, rest = path.partition("://")
    if colon and scheme != "file":
        message = f"partitions in '{scheme}' storage cannot be listed"
        raise SqlNotSupported(message, at=at)
    listed = {
        "/".join(f"{key}={value}" for key, value in partition)
        for partition in _partition_directories(Path(rest if colon else path), table.partitions)
        if all(unquote(value) == spec.get(key, unquote(value)) for key, value in partition)
    }
    return sorted({*listed, *registered})


def _partition_directories(directory: Path, keys: Sequence[str]) -> Iterator[tuple[tuple[str, str], ...]]:
    if not keys:
        yield ()
        return
    if not directory.is_dir():
        return
    for child in sorted(directory.iterdir()):
        key, equals, value = child.name.partition("=")
        if equals and key == keys[0] and child.is_dir():
            for more in _partition_directories(child, keys[1:]):
                yield ((key, value), *more)
