"""Statistics of tables and columns.

Promises: PyFlink's names.
Does not know: how they were computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class CatalogTableStatistics:
    """The size of a table or partition; -1 means unknown.

    Example:
        >>> CatalogTableStatistics(row_count=1_000).get_row_count()
        1000

    """

    UNKNOWN: ClassVar[CatalogTableStatistics]

    def __init__(
        self,
        row_count: int | None = None,
        field_count: int | None = None,
        total_size: int | None = None,
        raw_data_size: int | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self._values = (row_count or 0, field_count or 0, total_size or 0, raw_data_size or 0)
        self._properties = dict(properties or {})

    def get_row_count(self) -> int:
        """Return the number of rows."""
        return self._values[0]

    def get_field_count(self) -> int:
        """Return the number of columns."""
        return self._values[1]

    def get_total_size(self) -> int:
        """Return the size of the files in bytes."""
        return self._values[2]

    def get_raw_data_size(self) -> int:
        """Return the size of the uncompressed data in bytes."""
        return self._values[3]

    def get_properties(self) -> dict[str, str]:
        """Return further properties."""
        return dict(self._properties)

    def copy(self) -> CatalogTableStatistics:
        """Return a copy."""
        return CatalogTableStatistics(*self._values, properties=self._properties)


CatalogTableStatistics.UNKNOWN = CatalogTableStatistics(-1, -1, -1, -1)


class CatalogColumnStatistics:
    """The statistics of the columns of a table or partition.

    Example:
        >>> CatalogColumnStatistics({"name": {"distinct": 5}}).get_column_statistics_data()
        {'name': {'distinct': 5}}

    """

    def __init__(self, column_statistics_data: Any = None, properties: Mapping[str, str] | None = None) -> None:
        self._data, self._properties = column_statistics_data, dict(properties or {})

    def get_column_statistics_data(self) -> Any:
        """Return the statistics by column."""
        return self._data

    def get_properties(self) -> dict[str, str]:
        """Return further properties."""
        return dict(self._properties)

    def copy(self) -> CatalogColumnStatistics:
        """Return a copy."""
        return CatalogColumnStatistics(self._data, self._properties)
