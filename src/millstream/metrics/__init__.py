"""PyFlink's `pyflink.metrics`: metrics of user functions."""

from millstream.metrics.metricbase import Counter, Distribution, Meter, Metric, MetricGroup

__all__ = ["Counter", "Distribution", "Meter", "Metric", "MetricGroup"]
