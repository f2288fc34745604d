"""Another parallelism for a running job: the program laid out anew, and when to do so by itself.

Promises: a rescaled program has the same operators, ids and max parallelism, so state finds its place; what cannot run
is refused before anything stops; the adaptive rule waits until the cluster has settled, and rests after a change.
Does not know: threads, engines, checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from millstream.errors import UserError
from millstream.graph.stream_graph import StreamGraph, stream_graph

Wanted = int | Mapping[str, int]


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
    steps = [
        replace(
            step,
            parallelism=named.get(step.uid or "", named.get(step.name, step.parallelism)),
            max_parallelism=graph.node(step.id).max_parallelism,
        )
        for step in graph.program
    ]
    made = stream_graph(
        steps,
        parallelism=wanted if isinstance(wanted, int) else graph.parallelism,
        chaining=graph.chaining,
        chain_mixed_max_parallelism=graph.chains_mixed_max_parallelism,
    )
    return replace(made, program=graph.program if not named else tuple(steps))


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
