"""PyFlink's `pyflink.common.job_execution_result`."""

from millstream.client.job_client import JobExecutionResult

__all__ = ["JobExecutionResult"]
