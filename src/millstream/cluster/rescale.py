"""Another parallelism for a running job: the program laid out anew, and when to do so by itself.

Promises: a rescaled program has the same operators, ids and max parallelism, so state finds its place; what cannot run
is refused before anything stops; the adaptive rule waits until the cluster has settled, and rests after a change.
Does not know: engines, checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace

from millstream.errors import UserError
from millstream.graph.execution_plan import ExecutionPlan
from millstream.graph.stream_graph import StreamGraph, stream_graph

Wanted = int | Mapping[str, int]

_FIRST_RECORDS = 1_000  # read by the first epoch at another parallelism, at most: it has state to take over


class NoSuchOperator(UserError):
    """A rescale names an operator that the job does not have."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        self.name, self.known = name, known
        super().__init__(f"no operator has the uid or name '{name}'", hint=f"there are {', '.join(known)}")


class UnusableParallelism(UserError):
    """A parallelism below one, or not a number."""

    def __init__(self, wanted: object) -> None:
        super().__init__(f"a parallelism of {wanted!r} is not possible", hint="give an int of at least 1")


def rescaled(graph: StreamGraph, wanted: Wanted) -> StreamGraph:
    """The program at another parallelism.

    A number is for the operators whose parallelism the program left open; those it fixed stay as they are. A mapping of
    uids (or names) to numbers is for the operators it names."""
    numbers = wanted.values() if isinstance(wanted, Mapping) else (wanted,)
    for number in numbers:
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise UnusableParallelism(number)
    named = dict(wanted) if isinstance(wanted, Mapping) else {}
    known = {name for node in graph.nodes for name in (node.uid, node.name) if name is not None}
    for name in named:
        if name not in known:
            raise NoSuchOperator(name, tuple(node.uid or node.name for node in graph.nodes))
    program = tuple(
        replace(step, parallelism=named.get(step.uid or "", named.get(step.name, step.parallelism)))
        for step in graph.program
    )
    made = stream_graph(
        [replace(step, max_parallelism=graph.node(step.id).max_parallelism) for step in program],
        parallelism=wanted if isinstance(wanted, int) else graph.parallelism,
        chaining=graph.chaining,
        chain_mixed_max_parallelism=graph.chains_mixed_max_parallelism,
    )
    return replace(made, program=program, max_parallelism=graph.max_parallelism)


def most_useful(graph: StreamGraph) -> int:
    """The largest parallelism that every operator which is left open can have."""
    return min((node.max_parallelism for node in graph.nodes), default=1)


@dataclass(frozen=True)
class Adaptive:
    """The rule of the adaptive scheduler: as many subtasks as the cluster has slots, at most `most`. Times are ms."""

    most: int
    stable_for: int
    rest: int
    slots: int | None = None
    since: int = 0
    looked_at: int | None = None
    rescaled_at: int | None = None

    def look_due(self, now: int) -> bool:
        """Whether the cluster should be looked at: once a second is enough."""
        return self.looked_at is None or abs(now - self.looked_at) >= min(1_000, max(self.stable_for, 1))

    def after(self, slots: int | None, now: int) -> Adaptive:
        """What is known after a look at the cluster; None when it has no number."""
        if slots == self.slots:
            return replace(self, looked_at=now)
        return replace(self, slots=slots, since=now, looked_at=now)

    def wanted(self, now: int, current: int) -> int | None:
        """The parallelism to change to; None to stay."""
        if not self.slots or now - self.since < self.stable_for:
            return None
        if self.rescaled_at is not None and now - self.rescaled_at < self.rest:
            return None
        target = max(1, min(self.slots, self.most))
        return target if target != current else None

    def rescaled(self, now: int) -> Adaptive:
        """A change was ordered."""
        return replace(self, rescaled_at=now)


class Rescaling:
    """The change of parallelism of one job: ordered from any thread, begun and done by the one that runs the job."""

    def __init__(self, adaptive: Adaptive | None) -> None:
        self._adaptive = adaptive
        self._order: tuple[ExecutionPlan, Future[int]] | None = None
        self._begun: tuple[float, Future[int]] | None = None
        self._closed = False

    def limit(self, most: int) -> None:
        """No more than so many subtasks are possible: the adaptive rule asks for no more."""
        if self._adaptive is not None:
            self._adaptive = replace(self._adaptive, most=min(most, self._adaptive.most))

    def order(self, plan: ExecutionPlan) -> Future[int]:
        """Ask for another plan; what was asked for before and is not begun is given up."""
        done = Future[int]()
        replaced, self._order = self._order, (plan, done)
        if replaced is not None:
            replaced[1].cancel()
        if self._closed:
            done.cancel()
        return done

    @property
    def ordered(self) -> bool:
        """Whether a change waits."""
        return self._order is not None

    @property
    def under_way(self) -> bool:
        """Whether the next epoch is the first at another parallelism."""
        return self._begun is not None

    def wanted(self, slots: Callable[[], int | None], now: int, current: int) -> int | None:
        """The parallelism that the adaptive rule asks for by itself; `slots` looks at the cluster."""
        adaptive = self._adaptive
        if adaptive is None or self.ordered or not adaptive.look_due(now):
            return None
        adaptive = self._adaptive = adaptive.after(slots(), now)
        wanted = adaptive.wanted(now, current)
        if wanted is not None:
            self._adaptive = adaptive.rescaled(now)
        return wanted

    def begin(self, at: float) -> ExecutionPlan:
        """Carry out what is ordered, from `at` on."""
        assert self._order is not None
        (plan, done), self._order = self._order, None
        self._begun = at, done
        return plan

    def limited(self, records: int) -> int:
        """How many of so many records the next epoch reads."""
        return min(records, _FIRST_RECORDS) if self.under_way else records

    def done(self, slots: int, at: float) -> float:
        """The first epoch is accepted; gives the seconds since it was begun."""
        assert self._begun is not None
        (since, done), self._begun = self._begun, None
        if not done.cancelled():
            done.set_result(slots)
        return at - since

    def close(self) -> None:
        """The job has ended: what was not done will not be."""
        self._closed = True
        for waiting in (self._order, self._begun):
            if waiting is not None:
                waiting[1].cancel()
