"""PyFlink's `table.catalog`: catalogs, their objects, and resolved schemas.

Promises: PyFlink's public names.
Does not know: statements."""

from __future__ import annotations

from millstream.table.catalog.catalog import Catalog
from millstream.table.catalog.columns import Column, ComputedColumn, MetadataColumn, PhysicalColumn
from millstream.table.catalog.jdbc import JdbcCatalog
from millstream.table.catalog.models import CatalogModel
from millstream.table.catalog.objects import (
    CatalogBaseTable,
    CatalogDatabase,
    CatalogDescriptor,
    CatalogFunction,
    CatalogPartition,
    CatalogPartitionSpec,
)
from millstream.table.catalog.paths import ObjectIdentifier, ObjectPath
from millstream.table.catalog.procedures import Procedure, ProcedureContext
from millstream.table.catalog.resolved_schema import Constraint, ResolvedSchema, UniqueConstraint, WatermarkSpec
from millstream.table.catalog.statistics import CatalogColumnStatistics, CatalogTableStatistics

__all__ = [
    "Catalog",
    "CatalogBaseTable",
    "CatalogColumnStatistics",
    "CatalogDatabase",
    "CatalogDescriptor",
    "CatalogFunction",
    "CatalogModel",
    "CatalogPartition",
    "CatalogPartitionSpec",
    "CatalogTableStatistics",
    "Column",
    "ComputedColumn",
    "Constraint",
    "JdbcCatalog",
    "MetadataColumn",
    "ObjectIdentifier",
    "ObjectPath",
    "PhysicalColumn",
    "Procedure",
    "ProcedureContext",
    "ResolvedSchema",
    "UniqueConstraint",
    "WatermarkSpec",
]
