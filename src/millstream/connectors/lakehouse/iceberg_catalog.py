"""Access to Iceberg tables through their catalog.

Promises: a table is found by catalog and name alone, on the driver and in tasks; failures of the catalog are raised as
millstream errors.
Does not know: commits, scans."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from millstream.errors import UserError
from millstream.files.errors import ConnectorStorageFailure


class MissingIceberg(UserError):
    """pyiceberg is not installed."""

    hint = "pip install 'millstream[iceberg]'"

    def __init__(self, problem: ImportError) -> None:
        super().__init__(f"Iceberg tables need the package pyiceberg, which cannot be imported: {problem}")


class NoSuchTable(UserError):
    """The catalog does not have the table."""

    hint = "create it first, or give the sink a row type and call create_table_if_missing()"

    def __init__(self, table: str) -> None:
        super().__init__(f"the catalog has no table {table}")


def pyiceberg(module: str) -> Any:
    """Import a module of pyiceberg."""
    try:
        return importlib.import_module(f"pyiceberg.{module}")
    except ImportError as problem:
        raise MissingIceberg(problem) from problem


@contextlib.contextmanager
def open_catalog(name: str, properties: Mapping[str, str], subject: str) -> Iterator[Any]:
    """Open a catalog; its failures are raised as millstream errors about the subject."""
    exceptions = pyiceberg("exceptions")
    catalog = None
    try:
        catalog = pyiceberg("catalog").load_catalog(name, **properties)
        yield catalog
    except (exceptions.RESTError, exceptions.CommitFailedException, OSError, pa.ArrowException) as problem:
        raise ConnectorStorageFailure(subject, "reach", problem) from problem
    finally:
        if catalog is not None and hasattr(catalog, "close"):
            catalog.close()


@dataclass(frozen=True)
class TableLoader:
    """Where a table is: the catalog's name and properties, as pyiceberg's `load_catalog` takes them, and its name.

    Example:
        >>> loader = TableLoader.from_catalog("lake", {"type": "rest", "uri": "http://localhost:8181"}, "shop.orders")
        >>> loader.table
        'shop.orders'

    """

    catalog: str
    properties: tuple[tuple[str, str], ...] = field(repr=False)  # may contain secrets
    table: str

    @staticmethod
    def from_catalog(catalog: str, properties: dict[str, str], table: str) -> TableLoader:
        """Return a loader; `table` is `namespace.name`.

        Args:
            catalog: The name of the catalog.
            properties: The properties of the catalog, as pyiceberg's `load_catalog` takes them.
            table: The name of the table, as `namespace.name`.

        """
        return TableLoader(catalog, tuple(sorted(properties.items())), table)

    @contextlib.contextmanager
    def open_table(self) -> Iterator[tuple[Any, Any]]:
        """Open the catalog and load the table, None if it does not exist; failures are raised as millstream errors."""
        exceptions = pyiceberg("exceptions")
        with open_catalog(self.catalog, dict(self.properties), self.table) as catalog:
            try:
                table = catalog.load_table(self.table)
            except (exceptions.NoSuchTableError, exceptions.NoSuchNamespaceError):
                table = None
            yield catalog, table
