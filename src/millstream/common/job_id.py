"""PyFlink's module of this name: JobID, from `millstream.job.ids`."""

from __future__ import annotations

from millstream.job.ids import JobID

__all__ = ["JobID"]
