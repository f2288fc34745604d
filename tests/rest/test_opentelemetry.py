"""What an OpenTelemetry collector gets: OTLP requests of a running job, read with the classes of the protocol."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from millstream.cluster import entrypoint
from millstream.cluster.job_events import RescaleDone, StatusChanged
from millstream.cluster.metrics.metric import Metric, Scope, ScopeType
from millstream.cluster.metrics.reporters.otel import NoEndpoint, OtelMetricReporter, find_endpoint
from millstream.cluster.metrics.reporting import UnknownReporter, start_event_reporters
from millstream.common import Configuration, WatermarkStrategy
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.job.job_status import JobStatus

MESSAGES = {
    "/v1/metrics": ExportMetricsServiceRequest,
    "/v1/traces": ExportTraceServiceRequest,
    "/v1/logs": ExportLogsServiceRequest,
}


class Receiver:
    """The HTTP side of a collector."""

    def __init__(self) -> None:
        self.received: dict[str, list[Any]] = {path: [] for path in MESSAGES}
        received = self.received

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                received[self.path].append(MESSAGES[self.path].FromString(body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def spans(self) -> list[Any]:
        scopes = [
            scope
            for each in self.received["/v1/traces"]
            for spans in each.resource_spans
            for scope in spans.scope_spans
        ]
        return [span for scope in scopes for span in scope.spans]

    def records(self) -> list[Any]:
        scopes = [
            scope for each in self.received["/v1/logs"] for logs in each.resource_logs for scope in logs.scope_logs
        ]
        return [record for scope in scopes for record in scope.log_records]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.stop()


def settings_of(receiver: Receiver, *kinds: str) -> dict[str, str]:
    settings = {}
    for kind in kinds:
        name = {"metrics": "Metric", "traces": "Trace", "events": "Event"}[kind]
        factory = f"org.apache.flink.{kind}.otel.OpenTelemetry{name}ReporterFactory"
        settings[f"{kind}.reporter.otel.factory.class"] = factory
        settings[f"{kind}.reporter.otel.exporter.endpoint"] = receiver.endpoint
        settings[f"{kind}.reporter.otel.service.name"] = "fraud"
    return settings


def attributes_of(message: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in message.attributes}


def test_a_job_sends_spans_of_epochs_and_checkpoints_and_events(
    receiver: Receiver, inline_engine: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entrypoint, "_event_reporters", reporters := [])
    checkpoints = {"execution.checkpointing.dir": str(tmp_path), "execution.checkpointing.interval": "10 ms"}
    epochs = {"millstream.epoch.max-records": "50", "millstream.epoch.min-interval": "20 ms"}
    settings = {**settings_of(receiver, "traces", "events"), **checkpoints, **epochs}
    env = StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(settings))
    env.from_source(NumberSequenceSource(1, 200), WatermarkStrategy.no_watermarks(), "numbers").print()
    job = env.execute("sums").get_job_id()
    for reporter in reporters[0]:
        reporter.flush()
    spans = receiver.spans()
    assert {span.name for span in spans} == {"Epoch", "Checkpoint"}
    own = [attributes_of(span) for span in spans]
    assert {(each["job_id"], each["job_name"]) for each in own} == {(str(job), "sums")}
    assert sum(each.get("records", 0) for each in own) == 200
    assert all(span.end_time_unix_nano >= span.start_time_unix_nano > 10**18 for span in spans)
    assert all(each["fullSize"] >= 0 for each in own if "checkpointId" in each)
    statuses = [attributes_of(record)["status"] for record in receiver.records()]
    assert (statuses[-1], "RUNNING" in statuses) == ("FINISHED", True)
    (resource, *_) = (each.resource for each in receiver.received["/v1/logs"][0].resource_logs)
    assert attributes_of(resource)["service.name"] == "fraud"


def test_a_recovery_is_a_span_with_the_cause(receiver: Receiver) -> None:
    now = iter((1_000, 5_000, 5_500, *range(6_000, 7_000)))
    (traces, events) = start_event_reporters(settings_of(receiver, "traces", "events"), lambda: next(now))
    traces.on_event("1", "sums", StatusChanged(JobStatus.RESTARTING, 1, "ValueError: bad record"))
    traces.on_event("1", "sums", StatusChanged(JobStatus.RUNNING, 1))
    events.on_event("1", "sums", StatusChanged(JobStatus.RESTARTING, 1, "ValueError: bad record"))
    events.on_event("1", "sums", RescaleDone(7, 4, 20.0))
    traces.flush()
    events.flush()
    (span,) = receiver.spans()
    assert (span.name, span.status.message) == ("Recovery", "ValueError: bad record")
    assert (span.end_time_unix_nano - span.start_time_unix_nano) / 1e6 == pytest.approx(4_000, abs=1_000)
    assert [record.severity_text for record in receiver.records()] == ["ERROR", "INFO"]
    assert receiver.records()[0].body.string_value == "ValueError: bad record"


def test_metrics_are_gauges_with_flinks_names(receiver: Receiver) -> None:
    job = Scope(ScopeType.JOB, {"job_id": "1", "job_name": "sums"})
    task = Scope(ScopeType.TASK, {**job.variables, "subtask_index": "0"})
    metrics = [Metric(job, "uptime", 5), Metric(job, "path", "file:/x"), Metric(task, "numRecordsIn", 7)]
    OtelMetricReporter({"exporter.endpoint": receiver.endpoint}, lambda: 1_700_000_000_000).report(metrics)
    (scope,) = receiver.received["/v1/metrics"][0].resource_metrics[0].scope_metrics
    points = {metric.name: metric.gauge.data_points[0] for metric in scope.metrics}
    assert points.keys() == {"flink.jobmanager.job.uptime", "flink.taskmanager.job.task.numRecordsIn"}
    point = points["flink.taskmanager.job.task.numRecordsIn"]
    assert (point.as_double, point.time_unix_nano) == (7, 1_700_000_000_000 * 10**6)
    assert attributes_of(point) == dict(task.variables)


def test_invalid_options_are_refused() -> None:
    assert find_endpoint("traces", {"exporter.endpoint": "http://c:4318/"}) == "http://c:4318/v1/traces"
    assert find_endpoint("traces", {"exporter.endpoint": "http://c/own"}) == "http://c/own"
    with pytest.raises(NoEndpoint, match="has no exporter"):
        find_endpoint("metrics", {})
    with pytest.raises(NoEndpoint, match="gRPC"):
        find_endpoint("metrics", {"exporter.endpoint": "http://c:4317", "exporter.protocol": "gRPC"})
    with pytest.raises(UnknownReporter, match="TraceReporterFactory"):
        start_event_reporters({"traces.reporter.x.factory.class": "Slf4jTraceReporterFactory"}, lambda: 0)
