"""PyFlink's `pyflink.metrics`: what a user function can measure."""

from millstream.metrics.metricbase import Counter, Distribution, Meter, Metric, MetricGroup

__all__ = ["Counter", "Distribution", "Meter", "Metric", "MetricGroup"]
