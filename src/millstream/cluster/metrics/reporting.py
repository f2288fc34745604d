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
from typing import Protocol

from millstream.cluster.metrics.metric import Metric
from millstream.cluster.metrics.reporters.log import LogReporter
from millstream.cluster.metrics.reporters.statsd import StatsDReporter
from millstream.cluster.metrics.scope_formats import ScopeFormats
from millstream.errors import UserError
from millstream.times import Duration

_log = logging.getLogger("millstream.metrics")
_REPORTERS, _REPORTER = "metrics.reporters", "metrics.reporter."
_PROMETHEUS, _STATSD, _LOG = "PrometheusReporterFactory", "StatsDReporterFactory", "Slf4jReporterFactory"
_LOOPBACK = "127.0.0.1"

Collect = Callable[[], Iterable[Metric]]


class Reporter(Protocol):
    """Takes metrics once in each interval."""

    def report(self, metrics: Iterable[Metric]) -> None:
        """Report metrics."""


class Server(Protocol):
    """A server with the address at which metrics can be read."""

    address: str

    def stop(self) -> None:
        """Stop listening."""


class UnknownReporter(UserError):
    """The factory of a reporter is missing or has no counterpart."""

    def __init__(self, name: str, factory: str | None) -> None:
        what = "has no factory" if factory is None else f"has the unknown factory '{factory}'"
        super().__init__(
            f"metric reporter '{name}' {what}",
            hint=f"set {_REPORTER}{name}.factory.class to {_PROMETHEUS}, {_STATSD} or {_LOG}, with or without package",
        )


class PackageMissing(UserError):
    """The package of a reporter is not installed."""

    def __init__(self, package: str | None) -> None:
        super().__init__(
            f"the Prometheus reporter needs the package '{package}'",
            hint="install it: pip install 'millstream[metrics]'",
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
    by_name: dict[str, dict[str, str]] = {}
    for key, value in settings.items():
        if key.startswith(_REPORTER):
            name, _, option = key.removeprefix(_REPORTER).partition(".")
            by_name.setdefault(name, {})[option] = value
    named = [name.strip() for name in settings.get(_REPORTERS, "").replace(";", ",").split(",") if name.strip()]
    reporters = []
    for name in named or [name for name, options in by_name.items() if "factory.class" in options]:
        options = by_name.get(name, {})
        factory = options.get("factory.class")
        kind = "" if factory is None else factory.rpartition(".")[2]
        if kind not in (_PROMETHEUS, _STATSD, _LOG):
            raise UnknownReporter(name, factory)
        reporters.append(ReporterSettings(name, kind, options))
    return reporters


def start_reporters(settings: Mapping[str, str], collect: Collect, token: str | None) -> list[Server]:
    """Start the reporters that options name, and return the servers from which metrics can be read.

    Args:
        settings: All options.
        collect: Returns the metrics of this moment.
        token: The token that requests must have, if metrics are served to other machines.

    Raises:
        UserError: The options of a reporter are not valid, or its package is not installed.

    """
    servers = []
    for reporter in read_settings(settings):
        options = reporter.options
        if reporter.factory == _PROMETHEUS:
            servers.append(_serve(reporter, collect, token))
            continue
        formats = ScopeFormats.of_options(settings, options.get("scope.delimiter"))
        sink: Reporter = LogReporter(formats)
        if reporter.factory == _STATSD:
            sink = StatsDReporter(options.get("host", "localhost"), int(options.get("port", "8125")), formats)
        thread = threading.Thread(
            target=_report_repeatedly, args=(reporter, sink, collect), name=f"metrics-{reporter.name}", daemon=True
        )
        thread.start()
    return servers


def _serve(reporter: ReporterSettings, collect: Collect, token: str | None) -> Server:
    try:
        from millstream.cluster.metrics.reporters.prometheus import create_application
        from millstream.cluster.rest.server import RestServer
    except ModuleNotFoundError as missing:
        raise PackageMissing(missing.name) from missing
    application = create_application(lambda: reporter.select(collect()), token)
    host, ports = reporter.options.get("host", _LOOPBACK), reporter.options.get("port", "9249")
    server = RestServer.start(application, host, ports, has_token=token is not None)
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
        fnmatch.fnmatchcase(scope, pattern) and any(fnmatch.fnmatchcase(name, each) for each in names)
        for pattern, names in filters
    )
