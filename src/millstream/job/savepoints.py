"""The formats of savepoints.

Promises: Flink's two formats, by its names.
Does not know: what the files of a format contain."""

from __future__ import annotations

from enum import Enum


class SavepointFormatType(Enum):
    """CANONICAL: Parquet and JSON, independent of the state backend. NATIVE: the state files of the state backend.

    Example:
        >>> SavepointFormatType.of("native")
        <SavepointFormatType.NATIVE: 'native'>

    """

    CANONICAL = "canonical"
    NATIVE = "native"

    @classmethod
    def of(cls, format_type: SavepointFormatType | str | None) -> SavepointFormatType:
        """Return a format, which may be named by its name; canonical for None.

        Args:
            format_type: The format, its name in any case, or None.

        """
        if format_type is None:
            return cls.CANONICAL
        return format_type if isinstance(format_type, cls) else cls[str(format_type).upper()]
