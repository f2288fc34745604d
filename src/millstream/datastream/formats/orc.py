"""PyFlink's `datastream.formats.orc`: rows as ORC files.

Promises: PyFlink's names; of the writer's properties, `orc.compress` counts.
Does not know: how ORC is written; `millstream.formats` does."""

from __future__ import annotations

from typing import Any

from millstream.config.configuration import Configuration
from millstream.connector.serialization_schema import BulkWriterFactory
from millstream.connectors.files import OrcWriterFactory
from millstream.datastream.formats.row_types import row_type_of

__all__ = ["OrcBulkWriters"]


class OrcBulkWriters:
    """Writers of ORC files."""

    @staticmethod
    def for_row_type(
        row_type: Any, writer_properties: Configuration | None = None, hadoop_config: Configuration | None = None
    ) -> BulkWriterFactory:
        """Writers of rows."""
        properties = writer_properties or hadoop_config or Configuration()
        return OrcWriterFactory(row_type_of(row_type), compression=properties.get_string("orc.compress", "ZLIB"))
