"""Rescaling of a running job: the graph at another parallelism, and the adaptive scheduler.

Promises: a rescaled graph has the same operators, ids and max parallelism, so its state can be
assigned. What cannot run is refused before anything stops. The adaptive scheduler waits until the number of slots is
stable, and has a cooldown after a change.
Does not know: engines, checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace

from millstream.errors import UserError
from millstream.graph.execution_plan import ExecutionPlan
from millstream.graph.stream_graph import StreamGraph, stream_graph

RequestedParallelism = int | Mapping[str, int]

_FIRST_RECORDS = 1_000  # the most records of the first epoch at another parallelism, which also restores state


class NoSuchOperator(UserError):
    """A rescale request names an operator that the job does not have."""

    def __init__(self, name: str, operators: tuple[str, ...]) -> None:
        self.name, self.operators = name, operators
        super().__init__(
            f"no operator has the uid or name '{name}'", hint=f"operators of this job: {', '.join(operators)}"
        )


class UnusableParallelism(UserError):
    """A requested parallelism is below one or not a number."""

    def __init__(self, parallelism: object) -> None:
        super().__init__(f"a parallelism of {parallelism!r} is not possible", hint="use an int of at least 1")


def rescale_graph(graph: StreamGraph, parallelism: RequestedParallelism) -> StreamGraph:
    """Return the graph at another parallelism.

    A number is for the operators whose parallelism the program does not set; the others keep theirs. A mapping of uids
    (or names) to numbers is for the operators it names."""
    numbers = parallelism.values() if isinstance(parallelism, Mapping) else (parallelism,)
    for number in numbers:
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise UnusableParallelism(number)
    named = dict(parallelism) if isinstance(parallelism, Mapping) else {}
    operator_names = {name for node in graph.nodes for name in (node.uid, node.name) if name is not None}
    for name in named:
        if name not in operator_names:
            raise NoSuchOperator(name, tuple(node.uid or node.name for node in graph.nodes))
    program = tuple(
        replace(step, parallelism=named.get(step.uid or "", named.get(step.name, step.parallelism)))
        for step in graph.program
    )
    changed = stream_graph(
        [replace(step, max_parallelism=graph.node(step.id).max_parallelism) for step in program],
        parallelism=parallelism if isinstance(parallelism, int) else graph.parallelism,
        chaining=graph.chaining,
        chain_mixed_max_parallelism=graph.chains_mixed_max_parallelism,
    )
    return replace(changed, program=program, max_parallelism=graph.max_parallelism)


def max_useful_parallelism(graph: StreamGraph) -> int:
    """Return the largest parallelism that every operator can have."""
    return min((node.max_parallelism for node in graph.nodes), default=1)


@dataclass(frozen=True)
class Adaptive:
    """The rule of the adaptive scheduler: as many subtasks as the cluster has slots, at most `most`. Times are
    milliseconds: the number of slots must not have changed for `stable_for`, and `rest` is the cooldown."""

    most: int
    stable_for: int
    rest: int
    slots: int | None = None
    since: int = 0
    looked_at: int | None = None
    rescaled_at: int | None = None

    def should_query(self, now: int) -> bool:
        """Return whether to query the slots of the cluster again: once a second is enough."""
        return self.looked_at is None or abs(now - self.looked_at) >= min(1_000, max(self.stable_for, 1))

    def after(self, slots: int | None, now: int) -> Adaptive:
        """Return the rule after a query; `slots` is None if the number is not known."""
        if slots == self.slots:
            return replace(self, looked_at=now)
        return replace(self, slots=slots, since=now, looked_at=now)

    def target(self, now: int, current: int) -> int | None:
        """Return the parallelism to change to; None to keep the current one."""
        if not self.slots or now - self.since < self.stable_for:
            return None
        if self.rescaled_at is not None and now - self.rescaled_at < self.rest:
            return None
        target = max(1, min(self.slots, self.most))
        return target if target != current else None

    def after_rescale(self, now: int) -> Adaptive:
        """Return the rule after a change was requested: its cooldown begins."""
        return replace(self, rescaled_at=now)


class Rescaling:
    """Requests to change the parallelism of one job. Any thread may request; the thread of the job carries them out."""

    def __init__(self, adaptive: Adaptive | None) -> None:
        self._adaptive = adaptive
        self._requested: tuple[ExecutionPlan, Future[int]] | None = None
        self._under_way: tuple[float, Future[int]] | None = None
        self._closed = False

    def limit(self, most: int) -> None:
        """Limit the parallelism that the adaptive scheduler requests."""
        if self._adaptive is not None:
            self._adaptive = replace(self._adaptive, most=min(most, self._adaptive.most))

    def request(self, plan: ExecutionPlan) -> Future[int]:
        """Request another plan; an earlier request that is not carried out yet is cancelled."""
        done = Future[int]()
        replaced, self._requested = self._requested, (plan, done)
        if replaced is not None:
            replaced[1].cancel()
        if self._closed:
            done.cancel()
        return done

    @property
    def is_requested(self) -> bool:
        """Whether a request is pending."""
        return self._requested is not None

    @property
    def is_under_way(self) -> bool:
        """Whether the next epoch is the first at another parallelism."""
        return self._under_way is not None

    def ask_scheduler(self, slots: Callable[[], int | None], now: int, current: int) -> int | None:
        """Return the parallelism that the adaptive scheduler wants; None to keep the current one. `slots` queries the
        cluster."""
        adaptive = self._adaptive
        if adaptive is None or self.is_requested or not adaptive.should_query(now):
            return None
        adaptive = self._adaptive = adaptive.after(slots(), now)
        target = adaptive.target(now, current)
        if target is not None:
            self._adaptive = adaptive.after_rescale(now)
        return target

    def begin(self, at: float) -> ExecutionPlan:
        """Begin to carry out the request at the time `at`, and return its plan."""
        assert self._requested is not None
        (plan, done), self._requested = self._requested, None
        self._under_way = at, done
        return plan

    def limit_records(self, records: int) -> int:
        """Return how many of `records` the next epoch may read."""
        return min(records, _FIRST_RECORDS) if self.is_under_way else records

    def pause(self, at: float) -> float:
        """Return the seconds since `begin`."""
        assert self._under_way is not None
        return at - self._under_way[0]

    def complete(self, slots: int) -> None:
        """Complete the request after its first epoch was accepted."""
        assert self._under_way is not None
        (_, done), self._under_way = self._under_way, None
        if not done.cancelled():
            done.set_result(slots)

    def close(self) -> None:
        """Cancel all requests, including later ones, because the job has ended."""
        self._closed = True
        for waiting in (self._requested, self._under_way):
            if waiting is not None:
                waiting[1].cancel()
