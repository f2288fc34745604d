"""Identifiers of metrics for reporters without labels, by the options `metrics.scope.*`.

Promises: Flink's defaults and variables.
Does not know: reporters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from millstream.cluster.metrics.metric import Metric, ScopeType


@dataclass(frozen=True)
class ScopeFormats:
    """The format of each scope, and the delimiter between its parts."""

    formats: Mapping[ScopeType, str]
    delimiter: str = "."

    @classmethod
    def of_options(cls, settings: Mapping[str, str], delimiter: str | None = None) -> ScopeFormats:
        """Return the formats that options set; a reporter can have a delimiter of its own."""
        formats = {scope: settings.get(scope.option, scope.default_format) for scope in ScopeType}
        return cls(formats, delimiter or settings.get("metrics.scope.delimiter", "."))

    def identify(self, metric: Metric) -> str:
        """Return the identifier of a metric."""
        parts = self.formats[metric.scope.type].split(".")
        scope = (metric.scope.format(part).replace(self.delimiter, "_") for part in parts)
        return self.delimiter.join((*scope, *metric.name.split(".")))
