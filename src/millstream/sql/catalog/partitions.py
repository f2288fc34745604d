"""The partitions of a table: SHOW PARTITIONS.

Promises: a table whose connector keeps partitions in directories has them listed, in order, by what is there now, with
those that the catalog was told of.
Does not know: how partitions are read or written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote

from millstream.sql.catalog.catalog import TableDefinition
from millstream.sql.errors import CatalogError, SqlNotSupported, SqlValidationError, nearest


def partitions(
    name: str, table: TableDefinition, spec: Mapping[str, str], at: int | None, registered: Sequence[str] = ()
) -> list[str]:
    """The partitions that a specification selects, as `key=value/key=value`; `registered` were told to the catalog."""
    if not table.partitions:
        message = f"table '{name}' is not partitioned"
        raise CatalogError(message, at=at)
    for key in spec:
        if key not in table.partitions:
            message = f"'{key}' is no partition column of '{name}'"
            raise SqlValidationError(message, at=at, hint=nearest(key, table.partitions))
    path = table.options.get("path")
    if table.options.get("connector") != "filesystem" or path is None:
        if registered or table.options.get("connector") not in ("delta", "iceberg"):
            return sorted(registered)
        message = f"the connector of '{name}' does not tell its partitions, and none were added to the catalog"
        raise SqlNotSupported(message, at=at, hint="ALTER TABLE ... ADD PARTITION tells the catalog of one")
    scheme, colon, rest = path.partition("://")
    if colon and scheme != "file":
        message = f"partitions in '{scheme}' storage cannot be listed"
        raise SqlNotSupported(message, at=at)
    found = {
        "/".join(f"{key}={value}" for key, value in each)
        for each in _below(Path(rest if colon else path), table.partitions)
        if all(unquote(value) == spec.get(key, unquote(value)) for key, value in each)
    }
    return sorted({*found, *registered})


def _below(directory: Path, keys: Sequence[str]) -> Iterator[tuple[tuple[str, str], ...]]:
    if not keys:
        yield ()
        return
    if not directory.is_dir():
        return
    for each in sorted(directory.iterdir()):
        key, equals, value = each.name.partition("=")
        if equals and key == keys[0] and each.is_dir():
            for more in _below(each, keys[1:]):
                yield ((key, value), *more)
