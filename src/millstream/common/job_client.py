"""PyFlink's `pyflink.common.job_client`."""

from millstream.client.job_client import JobClient
from millstream.job.savepoints import SavepointFormatType

__all__ = ["JobClient", "SavepointFormatType"]
