"""PyFlink's `pyflink.common.job_client`."""

from millstream.client.job_client import JobClient

__all__ = ["JobClient"]
