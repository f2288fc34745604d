"""PyFlink's `datastream.formats.orc`: rows as ORC files.

Promises: PyFlink's names; of the writer's properties, only `orc.compress` has an effect.
Does not know: how ORC is written; `millstream.formats` does."""

from __future__ import annotations

from typing import Any

from millstream.config.configuration import Configuration
from millstream.connector.serialization_schema import BulkWriterFactory
from millstream.connectors.files import OrcWriterFactory
from millstream.datastream.formats.row_types import row_type_of

__all__ = ["OrcBulkWriters"]


class OrcBulkWriters:
    """Factories of writers of ORC files, for `FileSink.for_bulk_format`.

    Example:
        >>> from millstream.common import Types
        >>> from millstream.datastream.connectors.file_system import FileSink
        >>> row_type = Types.ROW_NAMED(["name"], [Types.STRING()])
        >>> sink = FileSink.for_bulk_format("/data/names", OrcBulkWriters.for_row_type(row_type)).build()

    """

    @staticmethod
    def for_row_type(
        row_type: Any, writer_properties: Configuration | None = None, hadoop_config: Configuration | None = None
    ) -> BulkWriterFactory:
        """Create a factory of writers of rows.

        Args:
            row_type: The type of the rows.
            writer_properties: Properties of the writer, of which only `orc.compress` has an effect.
            hadoop_config: Used if there are no `writer_properties`.

        """
        properties = writer_properties or hadoop_config or Configuration()
        return OrcWriterFactory(row_type_of(row_type), compression=properties.get_string("orc.compress", "ZLIB"))
