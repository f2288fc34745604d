"""Metrics as StatsD gauges in UDP packets.

Promises: the form of Flink's reporter, `scope.name:value|g`. A packet holds at most 1,400 bytes; one that cannot be
sent is lost, as UDP is.
Does not know: jobs, how often it is called."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterable, Iterator

from millstream.cluster.metrics.metric import Metric
from millstream.cluster.metrics.scope_formats import ScopeFormats

_PACKET_BYTES = 1_400


class StatsDReporter:
    """Sends metrics to one address."""

    def __init__(self, host: str, port: int, formats: ScopeFormats) -> None:
        self._address, self._formats = (host, port), formats

    def report(self, metrics: Iterable[Metric]) -> None:
        """Send all metrics that are numbers."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for packet in self._packets(metrics):
                with contextlib.suppress(OSError):
                    sender.sendto(packet, self._address)

    def _packets(self, metrics: Iterable[Metric]) -> Iterator[bytes]:
        packet = b""
        for metric in metrics:
            if (number := metric.number) is None:
                continue
            name = self._formats.identify(metric).replace(":", "-")
            # A server adds a number with a sign to the gauge, so that it is set to zero before a negative one.
            lines = (f"{name}:0|g\n" if number < 0 else "") + f"{name}:{number:.15g}|g\n"
            if len(packet) + len(lines.encode()) > _PACKET_BYTES:
                yield packet
                packet = b""
            packet += lines.encode()
        if packet:
            yield packet
