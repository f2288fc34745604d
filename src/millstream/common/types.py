"""PyFlink's module of this name: Row and RowKind, from `millstream.model.row`."""

from __future__ import annotations

from millstream.model.row import Row, RowKind

__all__ = ["Row", "RowKind"]
