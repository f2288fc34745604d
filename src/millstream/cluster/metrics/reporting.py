"""The reporters of a process, by Flink's options `metrics.reporters` and `metrics.reporter.<name>.*`.

Promises: reporters are started once; a reporter that fails is logged once and called again, and never fails a job.
Options of reporters that cannot work are refused when the first job is submitted.
Does not know: jobs; what metrics mean."""

from __future__ import annotations

import fnmatch
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from millstream.cluster.job_events import JobEvent
from millstream.cluster.metrics.metric import Metric
from millstream.cluster.metrics.reporters.log import LogReporter
from millstream.cluster.metrics.reporters.statsd import StatsDReporter
from millstream.cluster.metrics.scope_formats import ScopeFormats
from millstream.errors import UserError
from millstream.times import Duration

_log = logging.getLogger("millstream.metrics")
_PROMETHEUS, _STATSD, _LOG = "PrometheusReporterFactory", "StatsDReporterFactory", "Slf4jReporterFactory"
_OTEL = "OpenTelemetryMetricReporterFactory"
_OTEL_OF_EVENTS = {"traces": "OpenTelemetryTraceReporterFactory", "events": "OpenTelemetryEventReporterFactory"}
_LOOPBACK = "127.0.0.1"

Collect = Callable[[], Iterable[Metric]]


class Reporter(Protocol):
    """Takes metrics once in each interval."""

    def report(self, metrics: Iterable[Metric]) -> None:
        """Report metrics."""


class ReportsEvents(Protocol):
    """Takes the events of jobs."""

    def on_event(self, job_id: str, job_name: str, event: JobEvent) -> None:
        """Report an event; must be fast."""

    def flush(self) -> None:
        """Send what is buffered."""


class Server(Protocol):
    """A server with the address at which metrics can be read."""

    address: str

    def stop(self) -> None:
        """Stop listening."""


class UnknownReporter(UserError):
    """The factory of a reporter is missing or has no counterpart."""

    def __init__(self, name: str, factory: str | None, kind: str = "metrics") -> None:
        what = "has no factory" if factory is None else f"has the unknown factory '{factory}'"
        known = (_PROMETHEUS, _STATSD, _OTEL, _LOG) if kind == "metrics" else (_OTEL_OF_EVENTS[kind],)
        super().__init__(
            f"{kind.removesuffix('s')} reporter '{name}' {what}",
            hint=f"set {kind}.reporter.{name}.factory.class to {' or '.join(known)}, with or without package",
        )


class PackageMissing(UserError):
    """The package of a reporter is not installed."""

    def __init__(self, package: str | None, reporter: str, extra: str) -> None:
        super().__init__(
            f"the {reporter} reporter needs the package '{package}'",
            hint=f"install it: pip install 'millstream[{extra}]'",
        )


@dataclass(frozen=True)
class ReporterSettings:
    """The options of one reporter."""

    name: str
    factory: str
    options: Mapping[str, str]

    @property
    def interval(self) -> float:
        """The seconds between two reports."""
        return Duration.parse(self.options.get("interval", "10 s")).to_milliseconds() / 1000

    def select(self, metrics: Iterable[Metric]) -> Iterator[Metric]:
        """Return the metrics that the options `filter.includes` and `filter.excludes` let pass."""
        includes = _filters(self.options.get("filter.includes", "*:*"))
        excludes = _filters(self.options.get("filter.excludes", ""))
        for metric in metrics:
            scope = ".".join(metric.scope.type.groups)
            if _matches(includes, scope, metric.name) and not _matches(excludes, scope, metric.name):
                yield metric


def read_settings(settings: Mapping[str, str]) -> list[ReporterSettings]:
    """Return the reporters that options name: those of `metrics.reporters`, or all that have a factory.

    Raises:
        UnknownReporter: A reporter has no factory, or one without a counterpart.

    """
    return _read(settings, "metrics", (_PROMETHEUS, _STATSD, _OTEL, _LOG))


def _read(settings: Mapping[str, str], kind: str, factories: tuple[str, ...]) -> list[ReporterSettings]:
    prefix = f"{kind}.reporter."
    by_name: dict[str, dict[str, str]] = {}
    for key, value in settings.items():
        if key.startswith(prefix):
            name, _, option = key.removeprefix(prefix).partition(".")
            by_name.setdefault(name, {})[option] = value
    listed = settings.get(f"{kind}.reporters", "").replace(";", ",")
    named = [name.strip() for name in listed.split(",") if name.strip()]
    reporters = []
    for name in named or [name for name, options in by_name.items() if "factory.class" in options]:
        options = by_name.get(name, {})
        factory = options.get("factory.class")
        short = "" if factory is None else factory.rpartition(".")[2]
        if short not in factories:
            raise UnknownReporter(name, factory, kind)
        reporters.append(ReporterSettings(name, short, options))
    return reporters


def start_event_reporters(settings: Mapping[str, str], now: Callable[[], int]) -> list[ReportsEvents]:
    """Return the reporters of spans and events that `traces.reporter.*` and `events.reporter.*` name.

    Raises:
        UserError: The options of a reporter are not valid, or its package is not installed.

    """
    named = [
        (kind, factory_name)
        for kind, factory in _OTEL_OF_EVENTS.items()
        for factory_name in _read(settings, kind, (factory,))
    ]
    if not named:
        return []
    otel = _import_otel()
    create = {"traces": otel.TraceReporter, "events": otel.EventReporter}
    return [create[kind](reporter.options, now) for kind, reporter in named]


def _import_otel() -> Any:
    try:
        from millstream.cluster.metrics.reporters import otel
    except ModuleNotFoundError as missing:
        raise PackageMissing(missing.name, "OpenTelemetry", "otel") from missing
    return otel


def start_reporters(
    settings: Mapping[str, str], collect: Collect, now: Callable[[], int], security: Any = None
) -> list[Server]:
    """Start the reporters that options name, and return the servers from which metrics can be read.

    Args:
        settings: All options.
        collect: Returns the metrics of this moment.
        now: Returns milliseconds since 1970.
        security: The `Security` of servers from which metrics are read; None for none.

    Raises:
        UserError: The options of a reporter are not valid, or its package is not installed.

    """
    servers = []
    for reporter in read_settings(settings):
        options = reporter.options
        if reporter.factory == _PROMETHEUS:
            servers.append(_serve(reporter, collect, security))
            continue
        formats = ScopeFormats.of_options(settings, options.get("scope.delimiter"))
        sink: Reporter = LogReporter(formats)
        if reporter.factory == _STATSD:
            sink = StatsDReporter(options.get("host", "localhost"), int(options.get("port", "8125")), formats)
        elif reporter.factory == _OTEL:
            sink = _import_otel().OtelMetricReporter(options, now)
        thread = threading.Thread(
            target=_report_repeatedly, args=(reporter, sink, collect), name=f"metrics-{reporter.name}", daemon=True
        )
        thread.start()
    return servers


def _serve(reporter: ReporterSettings, collect: Collect, security: Any) -> Server:
    try:
        from millstream.cluster.metrics.reporters.prometheus import create_application
        from millstream.cluster.rest.security import Security
        from millstream.cluster.rest.server import RestServer
    except ModuleNotFoundError as missing:
        raise PackageMissing(missing.name, "Prometheus", "metrics") from missing
    protection = Security() if security is None else security
    application = create_application(lambda: reporter.select(collect()), protection.access)
    host, ports = reporter.options.get("host", _LOOPBACK), reporter.options.get("port", "9249")
    has_token = protection.access is not None
    server = RestServer.start(application, host, ports, has_token=has_token, tls=protection.tls)
    _log.info("metric reporter '%s' serves %s/metrics", reporter.name, server.address)
    return server


def _report_repeatedly(reporter: ReporterSettings, sink: Reporter, collect: Collect) -> None:
    has_failed = False
    pause = threading.Event()
    while not pause.wait(reporter.interval):
        try:
            sink.report(reporter.select(collect()))
        except Exception:
            if not has_failed:
                _log.exception("metric reporter '%s' failed; it is called again, and not logged again", reporter.name)
            has_failed = True


def _filters(text: str) -> list[tuple[str, list[str]]]:
    """Parse filters such as `*:numRecords*,uptime;jobmanager.job:*`: pairs of a scope and names."""
    filters = []
    for part in text.split(";"):
        scope, _, names = part.strip().partition(":")
        if scope:
            filters.append((scope, (names.partition(":")[0] or "*").split(",")))
    return filters


def _matches(filters: list[tuple[str, list[str]]], scope: str, name: str) -> bool:
    return any(
        fnmatch.fnmatchcase(scope, pattern) and any(fnmatch.fnmatchcase(name, name_pattern) for name_pattern in names)
        for pattern, names in filters
    )
