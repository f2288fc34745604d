"""PyFlink's `metrics.metricbase`: metrics of user functions."""

from millstream.job.metrics import Counter, Distribution, Meter, Metric, MetricGroup

__all__ = ["Counter", "Distribution", "Meter", "Metric", "MetricGroup"]
