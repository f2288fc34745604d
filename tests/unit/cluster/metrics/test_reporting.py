"""Metric reporters: options, filters, identifiers, and what the log gets."""

from __future__ import annotations

import logging

import pytest

from millstream.cluster.metrics.metric import Metric, Scope, ScopeType
from millstream.cluster.metrics.reporters.log import LogReporter
from millstream.cluster.metrics.reporting import UnknownReporter, read_settings
from millstream.cluster.metrics.scope_formats import ScopeFormats

JOB = Scope(ScopeType.JOB, {"host": "localhost", "job_id": "1", "job_name": "my.job"})
TASK = Scope(ScopeType.TASK, {**JOB.variables, "tm_id": "spark", "task_name": "map: a -> b", "subtask_index": "0"})
METRICS = [
    Metric(JOB, "uptime", 5),
    Metric(JOB, "lastCheckpointExternalPath", "file:/x"),
    Metric(TASK, "numRecordsIn", 7),
    Metric(TASK, "currentInputWatermark", -(2**63)),
    Metric(TASK, "isBackPressured", True),
]
PROMETHEUS = "org.apache.flink.metrics.prometheus.PrometheusReporterFactory"


def test_reporters_are_the_named_ones_or_all_with_a_factory() -> None:
    settings = {
        "metrics.reporter.prom.factory.class": PROMETHEUS,
        "metrics.reporter.log.factory.class": "Slf4jReporterFactory",
        "metrics.reporter.log.interval": "60 s",
    }
    assert [reporter.name for reporter in read_settings(settings)] == ["prom", "log"]
    (log,) = read_settings({**settings, "metrics.reporters": "log"})
    assert (log.factory, log.interval) == ("Slf4jReporterFactory", 60.0)
    with pytest.raises(UnknownReporter, match="metric reporter 'jmx' has no factory"):
        read_settings({**settings, "metrics.reporters": "jmx"})
    with pytest.raises(UnknownReporter, match=r"unknown factory 'a\.JMXReporterFactory'"):
        read_settings({"metrics.reporter.jmx.factory.class": "a.JMXReporterFactory"})


@pytest.mark.parametrize(
    ("includes", "excludes", "names"),
    [
        ("*:*", "", [metric.name for metric in METRICS]),
        ("*:num*,uptime", "", ["uptime", "numRecordsIn"]),
        ("jobmanager.job:*;*:num*:counter", "*:last*", ["uptime", "numRecordsIn"]),
    ],
)
def test_filters(includes: str, excludes: str, names: list[str]) -> None:
    options = {"filter.includes": includes, "filter.excludes": excludes, "factory.class": PROMETHEUS}
    (reporter,) = read_settings({f"metrics.reporter.p.{key}": value for key, value in options.items()})
    assert [metric.name for metric in reporter.select(METRICS)] == names


def test_identifiers() -> None:
    assert ScopeFormats.of_options({}).identify(METRICS[0]) == "localhost.jobmanager.my_job.uptime"
    formats = ScopeFormats.of_options({"metrics.scope.task": "jobs.<job_id>.<subtask_index>.<other>"}, "/")
    assert formats.identify(METRICS[2]) == "jobs/1/0/<other>/numRecordsIn"


def test_the_log_has_all_metrics(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "millstream.metrics"):
        LogReporter(ScopeFormats.of_options({})).report(METRICS)
    assert "localhost.jobmanager.my_job.lastCheckpointExternalPath: file:/x" in caplog.text
