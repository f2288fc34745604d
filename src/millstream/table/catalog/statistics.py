"""How much tables and their columns hold.

Promises: PyFlink's names.
Does not know: how it was counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class CatalogTableStatistics:
    """How much a table holds; -1 for what nobody has counted."""

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
        """Rows."""
        return self._values[0]

    def get_field_count(self) -> int:
        """Columns."""
        return self._values[1]

    def get_total_size(self) -> int:
        """Bytes as stored."""
        return self._values[2]

    def get_raw_data_size(self) -> int:
        """Bytes as read."""
        return self._values[3]

    def get_properties(self) -> dict[str, str]:
        """Anything else."""
        return dict(self._properties)

    def copy(self) -> CatalogTableStatistics:
        """The same."""
        return CatalogTableStatistics(*self._values, properties=self._properties)


CatalogTableStatistics.UNKNOWN = CatalogTableStatistics(-1, -1, -1, -1)


class CatalogColumnStatistics:
    """What the columns of a table hold."""

    def __init__(self, column_statistics_data: Any = None, properties: Mapping[str, str] | None = None) -> None:
        self._data, self._properties = column_statistics_data, dict(properties or {})

    def get_column_statistics_data(self) -> Any:
        """By column."""
        return self._data

    def get_properties(self) -> dict[str, str]:
        """Anything else."""
        return dict(self._properties)

    def copy(self) -> CatalogColumnStatistics:
        """The same."""
        return CatalogColumnStatistics(self._data, self._properties)
