"""PyFlink's module of this name: InputFormat, from `millstream.model.serialization`."""

from __future__ import annotations

from millstream.model.serialization import InputFormat

__all__ = ["InputFormat"]
