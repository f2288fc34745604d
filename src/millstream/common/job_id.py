"""PyFlink's module of this name: JobID, from `millstream.model.ids`."""

from __future__ import annotations

from millstream.model.ids import JobID

__all__ = ["JobID"]
