"""The types of catalogs, by the option `type` of CREATE CATALOG.

Promises: an unknown type, or wrong options, are refused.
Does not know: statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from millstream.sql.catalog.catalog import Catalog, Catalogs
from millstream.sql.catalog.catalog_store import open_catalog_store
from millstream.sql.catalog.filesystem import open_filesystem_catalog
from millstream.sql.catalog.iceberg import open_iceberg_catalog
from millstream.sql.catalog.jdbc import open_jdbc_catalog
from millstream.sql.errors import CatalogError, nearest

IN_MEMORY = "generic_in_memory"


def _open_in_memory(name: str, options: Mapping[str, str]) -> Catalog:
    return Catalog(name, options.get("default-database", "default"), options)


_TYPES: dict[str, Callable[[str, Mapping[str, str]], Catalog]] = {
    IN_MEMORY: _open_in_memory,
    "filesystem": open_filesystem_catalog,
    "iceberg": open_iceberg_catalog,
    "jdbc": open_jdbc_catalog,
}


def open_catalog(name: str, options: Mapping[str, str], at: int | None = None) -> Catalog:
    """Open the catalog that options describe. Nothing is read before the catalog is used."""
    catalog_type = options.get("type")
    if catalog_type is None:
        message = f"catalog '{name}' has no option 'type'"
        raise CatalogError(message, at=at, hint=f"write WITH ('type' = '{IN_MEMORY}'), or one of {', '.join(_TYPES)}")
    if catalog_type not in _TYPES:
        message = f"catalogs of type '{catalog_type}' are not supported"
        hint = nearest(catalog_type, _TYPES) or f"the types are {', '.join(_TYPES)}"
        raise CatalogError(message, at=at, hint=hint)
    return _TYPES[catalog_type](name, options)


def load_stored_catalogs(catalogs: Catalogs, options: Callable[[str], str | None]) -> None:
    """Add the catalogs of the catalog store that the options of a session name, if they name one."""
    catalogs.store = open_catalog_store(options)
    if catalogs.store is not None:
        catalogs.all |= {name: open_catalog(name, stored) for name, stored in catalogs.store.load().items()}
