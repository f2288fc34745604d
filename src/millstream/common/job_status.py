"""PyFlink's module of this name: JobStatus, from `millstream.job.job_status`."""

from __future__ import annotations

from millstream.job.job_status import JobStatus

__all__ = ["JobStatus"]
