"""Metrics, traces and events for OpenTelemetry, sent as OTLP over HTTP.

Promises: names and attributes of metrics are those of Flink's reporter: `flink.taskmanager.job.task.numRecordsIn` with
`job_name`, `subtask_index` and so on; all metrics are gauges. Epochs, checkpoints and recoveries are spans; changes of
status, rescalings and failures are log records. Spans and log records are sent by threads of their own.
Does not know: jobs, how often metrics are reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from urllib.parse import urlsplit

from opentelemetry._logs import SeverityNumber
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import export as sdk
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Status, StatusCode

from millstream.cluster.job_events import CheckpointDone, EpochDone, JobEvent, RescaleDone, StatusChanged
from millstream.cluster.metrics.metric import Metric
from millstream.errors import UserError
from millstream.job.job_status import JobStatus
from millstream.times import Duration

_SCOPE = "millstream"
_MILLION = 1_000_000  # nanoseconds of a millisecond
_PATHS = {"metrics": "/v1/metrics", "traces": "/v1/traces", "events": "/v1/logs"}

Now = Callable[[], int]


class NoEndpoint(UserError):
    """The address of the collector is missing, or its protocol is not HTTP."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(
            f"the OpenTelemetry reporter of {what} {reason}",
            hint=f"set {what}.reporter.NAME.exporter.endpoint to an address such as http://localhost:4318, and "
            "exporter.protocol to HTTP",
        )


def find_endpoint(what: str, options: Mapping[str, str]) -> str:
    """Return the URL to which `what` (metrics, traces or events) is sent.

    Raises:
        NoEndpoint: There is none, or the protocol is not HTTP.

    """
    endpoint = options.get("exporter.endpoint")
    if endpoint is None:
        raise NoEndpoint(what, "has no exporter.endpoint")
    if options.get("exporter.protocol", "HTTP").upper() != "HTTP":
        raise NoEndpoint(what, f"has the protocol {options['exporter.protocol']}, and sends HTTP only")
    has_path = urlsplit(endpoint).path.strip("/")
    return endpoint if has_path else endpoint.rstrip("/") + _PATHS[what]


def find_timeout(options: Mapping[str, str]) -> float:
    """Return the timeout of requests to the collector, in seconds."""
    return Duration.parse(options.get("exporter.timeout", "10 s")).to_milliseconds() / 1000


def describe_resource(options: Mapping[str, str]) -> Resource:
    """Return what identifies this process: its name and version, as options set them."""
    attributes = {"service.name": options.get("service.name", "millstream")}
    if "service.version" in options:
        attributes["service.version"] = options["service.version"]
    return Resource.create(attributes)


class OtelMetricReporter:
    """Sends metrics as gauges."""

    def __init__(self, options: Mapping[str, str], now: Now) -> None:
        """`now` returns milliseconds since 1970."""
        self._exporter = OTLPMetricExporter(find_endpoint("metrics", options), timeout=find_timeout(options))
        self._resource, self._now = describe_resource(options), now

    def report(self, metrics: Iterable[Metric]) -> None:
        """Send all metrics that are numbers."""
        time = self._now() * _MILLION
        points: dict[str, list[sdk.NumberDataPoint]] = {}
        for metric in metrics:
            if (number := metric.number) is None:
                continue
            name = ".".join(("flink", *metric.scope.type.groups, metric.name))
            point = sdk.NumberDataPoint(dict(metric.scope.variables), time, time, number)
            points.setdefault(name, []).append(point)
        described = [sdk.Metric(name, None, None, sdk.Gauge(values)) for name, values in points.items()]
        scope = sdk.ScopeMetrics(InstrumentationScope(_SCOPE), described, "")
        data = sdk.MetricsData([sdk.ResourceMetrics(self._resource, [scope], "")])
        if self._exporter.export(data) is not sdk.MetricExportResult.SUCCESS:
            msg = "the collector did not take the metrics"
            raise OSError(msg)


class TraceReporter:
    """Sends the epochs, checkpoints and recoveries of jobs as spans."""

    def __init__(self, options: Mapping[str, str], now: Now) -> None:
        self._now = now
        self._provider = TracerProvider(resource=describe_resource(options))
        exporter = OTLPSpanExporter(find_endpoint("traces", options), timeout=find_timeout(options))
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer(_SCOPE)
        self._restarting: dict[str, tuple[int, str | None]] = {}

    def on_event(self, job_id: str, job_name: str, event: JobEvent) -> None:
        """Send an event of a job that has a duration."""
        job: dict[str, str | int] = {"job_id": job_id, "job_name": job_name}
        match event:
            case EpochDone():
                attributes = {**job, "epoch": event.epoch, "records": event.records, "watermark": event.watermark}
                self._send("Epoch", event.duration_ms, attributes)
            case CheckpointDone():
                attributes = {**job, "checkpointId": event.id, "epoch": event.epoch, "fullSize": event.full_bytes}
                self._send("Checkpoint", event.duration_ms, {**attributes, "checkpointedSize": event.bytes})
            case StatusChanged(status=JobStatus.RESTARTING):
                self._restarting.setdefault(job_id, (self._now(), event.cause))
            case StatusChanged(status=JobStatus.RUNNING | JobStatus.FAILED | JobStatus.CANCELED):
                if job_id in self._restarting:
                    begin, cause = self._restarting.pop(job_id)
                    attributes = {**job, "restarts": event.restarts, "status": event.status.name}
                    self._send("Recovery", self._now() - begin, attributes, cause)

    def flush(self) -> None:
        """Send what is buffered."""
        self._provider.force_flush()

    def _send(
        self, name: str, duration_ms: float, attributes: Mapping[str, str | int], cause: str | None = None
    ) -> None:
        end = self._now() * _MILLION
        span = self._tracer.start_span(name, attributes=attributes, start_time=end - round(duration_ms * _MILLION))
        if cause is not None:
            span.set_status(Status(StatusCode.ERROR, cause))
        span.end(end)


class EventReporter:
    """Sends changes of the status of jobs, with the cause of failures, and rescalings as log records."""

    def __init__(self, options: Mapping[str, str], now: Now) -> None:
        self._now = now
        self._provider = LoggerProvider(resource=describe_resource(options))
        exporter = OTLPLogExporter(find_endpoint("events", options), timeout=find_timeout(options))
        self._provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
        self._logger = self._provider.get_logger(_SCOPE)

    def on_event(self, job_id: str, job_name: str, event: JobEvent) -> None:
        """Send an event of a job."""
        job: dict[str, str | int] = {"job_id": job_id, "job_name": job_name}
        match event:
            case StatusChanged():
                failed = event.cause is not None
                body = event.cause or f"the job is {event.status.name}"
                attributes = {**job, "status": event.status.name, "restarts": event.restarts}
                self._send("JobStatusChangeEvent", body, attributes, failed=failed)
            case RescaleDone():
                body = f"the job runs in {event.slots} slots"
                self._send("RescaleEvent", body, {**job, "epoch": event.epoch, "slots": event.slots})

    def flush(self) -> None:
        """Send what is buffered."""
        self._provider.force_flush()

    def _send(self, name: str, body: str, attributes: Mapping[str, str | int], *, failed: bool = False) -> None:
        self._logger.emit(
            timestamp=self._now() * _MILLION,
            severity_number=SeverityNumber.ERROR if failed else SeverityNumber.INFO,
            severity_text="ERROR" if failed else "INFO",
            body=body,
            attributes=attributes,
            event_name=name,
        )
