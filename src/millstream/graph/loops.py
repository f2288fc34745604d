"""The iterations of a program: which operators are head, tail and body, and whether the iteration can run.

Promises: an iteration that cannot run is refused before the job starts, with the reason.
Does not know: rounds, epochs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from millstream.errors import UserError
from millstream.graph.execution_plan import ExecutionPlan
from millstream.graph.stream_graph import StreamEdge, StreamNode
from millstream.runtime.loops import LoopConfig
from millstream.runtime.operators.loop import CriterionSpec, HeadSpec, ReplaySpec, TailSpec
from millstream.runtime.operators.per_round import PerRoundSpec


class UnusableIteration(UserError):
    """An iteration of the program cannot run."""


@dataclass(frozen=True)
class Loop:
    """An iteration. Operators are named by their ids.

    Attributes:
        config: Its name, and when it terminates.
        pairs: The head and the tail of each variable stream.
        members: The operators of the body, and heads, tails and criteria.
        sources: The sources whose records reach the iteration.
        after: The names of the iterations whose results reach this one.

    """

    config: LoopConfig
    pairs: tuple[tuple[str, str], ...]
    members: tuple[str, ...]
    sources: tuple[str, ...]
    after: tuple[str, ...]


def loops_of(plan: ExecutionPlan) -> tuple[Loop, ...]:
    """Return the iterations of a plan, each after those it depends on."""
    nodes = [node for vertex in plan.job.vertices for node in vertex.nodes]
    inner = [edge for vertex in plan.job.vertices for edge in vertex.inner]
    return find_loops(nodes, [*inner, *(edge.stream_edge for edge in plan.job.edges)])


def find_loops(nodes: Iterable[StreamNode], edges: Iterable[StreamEdge]) -> tuple[Loop, ...]:
    """Return the iterations of a program, each after those it depends on; refuse those that cannot run."""
    by_id = {node.id: node for node in nodes}
    parts: dict[LoopConfig, list[StreamNode]] = {}
    for node in by_id.values():
        if isinstance(node.spec, HeadSpec | TailSpec | CriterionSpec | ReplaySpec):
            parts.setdefault(node.spec.loop, []).append(node)
    per_round = {node.operator: node.name for node in by_id.values() if isinstance(node.spec, PerRoundSpec)}
    if not parts:
        _check_lifecycle(per_round, ())
        return ()
    downstream: dict[int, list[int]] = {}
    upstream: dict[int, list[int]] = {}
    for edge in edges:
        downstream.setdefault(edge.upstream, []).append(edge.downstream)
        upstream.setdefault(edge.downstream, []).append(edge.upstream)
    loops = [_find_loop(config, members, by_id, downstream, upstream) for config, members in parts.items()]
    _check_names(loops)
    _check_lifecycle(per_round, loops)
    return _sort(loops)


def _find_loop(
    config: LoopConfig,
    parts: list[StreamNode],
    nodes: Mapping[int, StreamNode],
    downstream: Mapping[int, list[int]],
    upstream: Mapping[int, list[int]],
) -> Loop:
    heads = {node.spec.index: node for node in parts if isinstance(node.spec, HeadSpec)}
    tails = {node.spec.index: node for node in parts if isinstance(node.spec, TailSpec)}
    if len(heads) + len(tails) < sum(isinstance(node.spec, HeadSpec | TailSpec) for node in parts):
        raise _same_name(config.name)
    if heads.keys() != tails.keys():
        msg = f"iteration '{config.name}' has {len(heads)} variable streams and {len(tails)} feedback streams"
        raise UnusableIteration(msg, hint="return one feedback stream for each variable stream, in the same order")
    for index, head in heads.items():
        tail = tails[index]
        if (head.parallelism, head.max_parallelism) != (tail.parallelism, tail.max_parallelism):
            msg = (
                f"head and tail of iteration '{config.name}' have parallelism {head.parallelism} of at most "
                f"{head.max_parallelism} and {tail.parallelism} of at most {tail.max_parallelism}"
            )
            raise UnusableIteration(msg, hint="feedback stays in its slot: give both the same parallelism")
    part_ids = {node.id for node in parts}
    starts = [node.id for node in parts if isinstance(node.spec, HeadSpec | ReplaySpec)]
    # the calls that built the body came after that of the first head, and before that of the last tail or criterion
    members = part_ids | {node for node in _reach(starts, downstream) if min(part_ids) < node < max(part_ids)}
    others = {
        node.spec.loop.name
        for node in nodes.values()
        if isinstance(node.spec, HeadSpec) and node.id not in part_ids and min(part_ids) < node.id < max(part_ids)
    }
    if others:
        msg = f"iteration '{min(others)}' is inside of iteration '{config.name}'"
        raise UnusableIteration(msg, hint="nested iterations are not possible: run one after the other")
    inputs = _reach(members, upstream)
    before = [nodes[node].spec for node in sorted(inputs - part_ids)]
    return Loop(
        config,
        tuple((heads[index].operator, tails[index].operator) for index in sorted(heads)),
        tuple(nodes[node].operator for node in sorted(members)),
        tuple(nodes[node].operator for node in sorted(inputs) if nodes[node].source is not None),
        tuple(dict.fromkeys(spec.loop.name for spec in before if isinstance(spec, HeadSpec))),
    )


def _reach(starts: Iterable[int], neighbours: Mapping[int, list[int]]) -> set[int]:
    reached: set[int] = set()
    pending = list(starts)
    while pending:
        node = pending.pop()
        if node not in reached:
            reached.add(node)
            pending += neighbours.get(node, ())
    return reached


def _check_names(loops: list[Loop]) -> None:
    names = [loop.config.name for loop in loops]
    for name in names:
        if names.count(name) > 1:
            raise _same_name(name)


def _check_lifecycle(per_round: Mapping[str, str], loops: Iterable[Loop]) -> None:
    members = {operator for loop in loops if loop.config.bounded for operator in loop.members}
    outside = [name for operator, name in per_round.items() if operator not in members]
    if outside:
        msg = f"'{outside[0]}' lives for one round, but is not in the body of a bounded iteration"
        raise UnusableIteration(msg, hint="call for_each_round inside of the body, with streams of the body")


def _same_name(name: str) -> UnusableIteration:
    msg = f"two iterations have the name '{name}'"
    return UnusableIteration(msg, hint="give each iteration of a program its own name")


def _sort(loops: list[Loop]) -> tuple[Loop, ...]:
    ordered: list[Loop] = []
    waiting = list(loops)
    while waiting:
        ready = [loop for loop in waiting if all(other.config.name not in loop.after for other in waiting)]
        if not ready:
            msg = f"iterations {', '.join(repr(loop.config.name) for loop in waiting)} depend on one another"
            raise UnusableIteration(msg, hint="connect them in one direction only")
        ordered += ready
        waiting = [loop for loop in waiting if loop not in ready]
    return tuple(ordered)
