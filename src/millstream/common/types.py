"""PyFlink's module of this name: Row and RowKind, from `millstream.types.row`."""

from __future__ import annotations

from millstream.types.row import Row, RowKind

__all__ = ["Row", "RowKind"]
