"""PyFlink's module of this name: InputFormat, from `millstream.connector.serialization_schema`."""

from __future__ import annotations

from millstream.connector.serialization_schema import InputFormat

__all__ = ["InputFormat"]
