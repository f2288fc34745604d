"""Metrics for Prometheus, which reads them from `/metrics`.

Promises: names and labels are those of Flink's reporter: `flink_taskmanager_job_task_numRecordsIn{job_name="…"}`. All
metrics are gauges; metrics with a text as value are left out. Values are computed on request.
Does not know: sockets, jobs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from fastapi import FastAPI, Request, Response
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector, CollectorRegistry

from millstream.cluster.metrics.metric import Metric
from millstream.cluster.rest.same_origin import refuse_other_hosts, refuse_other_sites
from millstream.cluster.rest.token import Access, require_token

_INVALID = re.compile("[^a-zA-Z0-9:_]")


class MetricsCollector(Collector):
    """A collector of `prometheus_client`."""

    def __init__(self, collect: Callable[[], Iterable[Metric]]) -> None:
        self._collect = collect

    def describe(self) -> list[GaugeMetricFamily]:
        """Return nothing: the metrics depend on the jobs."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the current metrics, grouped by name."""
        families: dict[str, GaugeMetricFamily] = {}
        for metric in self._collect():
            if (number := metric.number) is None:
                continue
            name = _clean("_".join(("flink", *metric.scope.type.groups, metric.name)))
            labels = {label: _clean(value) for label, value in metric.scope.variables.items()}
            if name not in families:
                documentation = f"{metric.name} (scope: {'_'.join(metric.scope.type.groups)})"
                families[name] = GaugeMetricFamily(name, documentation, labels=list(labels))
            families[name].add_metric(list(labels.values()), number)
        yield from families.values()


def create_application(collect: Callable[[], Iterable[Metric]], token: Access | str | None) -> FastAPI:
    """Return the application that Prometheus reads; with a token, requests must have it."""
    registry = CollectorRegistry()
    registry.register(MetricsCollector(collect))
    application = FastAPI(title="millstream metrics", openapi_url=None, docs_url=None, redoc_url=None)

    @application.get("/metrics")
    def get_metrics(request: Request) -> Response:
        """Return all metrics."""
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), media_type=content_type)

    application.middleware("http")(refuse_other_sites)
    application.middleware("http")(refuse_other_hosts if token is None else require_token(token))
    return application


def _clean(text: str) -> str:
    return _INVALID.sub("_", text)
