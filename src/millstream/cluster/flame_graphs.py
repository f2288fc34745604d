"""Flame graphs of the vertices of one job: which vertices are sampled now, and the stacks that their tasks report.

Promises: tasks are sampled only while flame graphs are requested; stacks are kept for some minutes, and their number is
bounded. The methods may be called from any thread.
Does not know: how stacks are sampled, who requests flame graphs."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from millstream import options
from millstream.config.configuration import Configuration
from millstream.runtime.stack_samples import Sampling, Stack
from millstream.times import Clock

_WANTED_SECONDS = 20.0  # seconds after the last request of a vertex for which it is sampled
_KEPT_REPORTS = 2_000  # stacks that are kept for all subtasks of a vertex

# the samples of an epoch: (subtask, stacks) by vertex
Profiles = Mapping[str, tuple[tuple[int, Mapping[str, Any]], ...]]


@dataclass
class _Vertex:
    wanted_until: float
    reports: deque[tuple[float, int, Mapping[str, Any]]] = field(default_factory=lambda: deque(maxlen=_KEPT_REPORTS))
    updated: int = 0


@dataclass(frozen=True)
class FlameNode:
    """A call, how often it was seen, and the calls inside it."""

    name: str
    value: int
    children: tuple[FlameNode, ...]


@dataclass(frozen=True)
class FlameGraph:
    """All samples of a vertex or subtask. `time` is that of the last sample, in milliseconds since 1970."""

    time: int
    root: FlameNode


class FlameGraphs:
    """The samples of one job."""

    def __init__(self, configuration: Configuration, clock: Clock) -> None:
        self.enabled = configuration.get(options.FLAMEGRAPH_ENABLED)
        delay = configuration.get(options.FLAMEGRAPH_DELAY).to_milliseconds() / 1000
        self._sampling = Sampling(max(0.001, delay), max(1, configuration.get(options.FLAMEGRAPH_DEPTH)))
        self._kept_seconds = configuration.get(options.FLAMEGRAPH_REFRESH).to_milliseconds() / 1000
        self._clock = clock
        self._lock = threading.Lock()
        self._vertices: dict[str, _Vertex] = {}

    def request(self, vertex: str) -> None:
        """Sample the tasks of a vertex for some time from now on."""
        until = self._clock.precise() + _WANTED_SECONDS
        with self._lock:
            self._vertices.setdefault(vertex, _Vertex(until)).wanted_until = until

    def sampled(self) -> Mapping[str, Sampling]:
        """Return how vertices are sampled in the next epoch, by id; only sampled vertices are included."""
        if not self._vertices:
            return {}
        now = self._clock.precise()
        with self._lock:
            return {name: self._sampling for name, vertex in self._vertices.items() if vertex.wanted_until > now}

    def add(self, profiles: Profiles) -> None:
        """Add the samples of an epoch."""
        now = self._clock.precise()
        with self._lock:
            for name, reported in profiles.items():
                vertex = self._vertices.setdefault(name, _Vertex(now))
                vertex.reports.extend((now, subtask, stacks) for subtask, stacks in reported)
                vertex.updated = self._clock.now()
                while vertex.reports and vertex.reports[0][0] < now - self._kept_seconds:
                    vertex.reports.popleft()

    def get(self, vertex: str, subtask: int | None, kinds: Iterable[str]) -> FlameGraph | None:
        """Return the flame graph of a vertex, or of one of its subtasks, from stacks of these kinds (on, off the CPU);
        None if there are no samples yet."""
        with self._lock:
            known = self._vertices.get(vertex)
            reports = [] if known is None else list(known.reports)
            updated = 0 if known is None else known.updated
        stacks: Counter[Stack] = Counter()
        for _, index, reported in reports:
            if subtask is None or index == subtask:
                for kind in kinds:
                    stacks.update({tuple(stack): count for stack, count in reported.get(kind, ())})
        return FlameGraph(updated, _build("root", list(stacks.items()), 0)) if reports else None


def _build(name: str, stacks: list[tuple[Stack, int]], depth: int) -> FlameNode:
    by_call: dict[str, list[tuple[Stack, int]]] = {}
    for stack, count in stacks:
        if len(stack) > depth:
            by_call.setdefault(stack[depth], []).append((stack, count))
    children = tuple(_build(call, inside, depth + 1) for call, inside in sorted(by_call.items()))
    return FlameNode(name, sum(count for _, count in stacks), children)
