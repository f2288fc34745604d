"""PyFlink's `metrics.metricbase`: what a user function can measure."""

from millstream.job.metrics import Counter, Distribution, Meter, Metric, MetricGroup

__all__ = ["Counter", "Distribution", "Meter", "Metric", "MetricGroup"]
