"""Metrics as a message of the logger `millstream.metrics`.

Promises: one message for each report, with a line for each metric, as Flink's Slf4j reporter.
Does not know: jobs, how often it is called."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from millstream.cluster.metrics.metric import Metric
from millstream.cluster.metrics.scope_formats import ScopeFormats

_log = logging.getLogger("millstream.metrics")


class LogReporter:
    """Logs metrics."""

    def __init__(self, formats: ScopeFormats) -> None:
        self._formats = formats

    def report(self, metrics: Iterable[Metric]) -> None:
        """Log all metrics."""
        lines = (f"{self._formats.identify(metric)}: {metric.value}" for metric in metrics)
        _log.info("metrics report\n%s", "\n".join(lines))
