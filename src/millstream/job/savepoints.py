"""How a savepoint is written.

Promises: Flink's two forms, by its names.
Does not know: what is in either."""

from __future__ import annotations

from enum import Enum


class SavepointFormatType(Enum):
    """CANONICAL: Parquet and JSON for anybody to read, whatever the backend. NATIVE: the state files as they are."""

    CANONICAL = "canonical"
    NATIVE = "native"

    @classmethod
    def of(cls, given: SavepointFormatType | str | None) -> SavepointFormatType:
        """A form by itself or by its name; canonical where none is given."""
        if given is None:
            return cls.CANONICAL
        return given if isinstance(given, cls) else cls[str(given).upper()]
