"""Operators and edges with everything decided that a program may leave open: the second graph.

Promises: the same program gives the same graph, with the same operator ids, in every process; ids come from the uid
where there is one, else from the operator's place in the structure.
Does not know: chains."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from millstream.connector.sink import Sink
from millstream.connector.source import Source
from millstream.errors import UserError
from millstream.graph.transformations import DEFAULT_SLOT_GROUP, Chaining, Input, Transformation
from millstream.job.traits import OperatorTraits
from millstream.runtime.operator import OperatorSpec
from millstream.runtime.partitioners import ElidedHash, Forward, Hash, Partitioner, Rebalance
from millstream.state.key_groups import check_parallelism, default_max_parallelism
from millstream.types.factory import TypeInformation


class EmptyProgram(UserError):
    """There is nothing to run."""

    hint = "add a source and at least one operator before execute()"


class UidTaken(UserError):
    """Two operators have the same uid."""

    def __init__(self, uid: str, one: str, other: str) -> None:
        super().__init__(
            f"uid '{uid}' is used by '{one}' and by '{other}'", hint="state is found by uid: give each operator its own"
        )


@dataclass(frozen=True)
class StreamNode:
    """One operator."""

    id: int
    operator: str
    name: str
    spec: OperatorSpec
    parallelism: int
    max_parallelism: int
    output_type: TypeInformation
    key_type: TypeInformation | None = None
    side_types: Mapping[str, TypeInformation] = field(default_factory=dict)
    source: Source | None = None
    sink: Sink | None = None
    uid: str | None = None
    chaining: Chaining = Chaining.ALWAYS
    slot_group: str = DEFAULT_SLOT_GROUP
    description: str | None = None
    traits: OperatorTraits | None = None


@dataclass(frozen=True)
class StreamEdge:
    """Records from one operator to an input of another."""

    upstream: int
    downstream: int
    side: int
    tag: str | None
    partitioner: Partitioner


@dataclass(frozen=True)
class StreamGraph:
    """The operators of a program in the order they were made, and their edges.

    `program`, `parallelism` and `max_parallelism` (None: left open) are what it was made from, so that it can be made
    again with other numbers. `classes` are those that the program registered for untyped values."""

    nodes: tuple[StreamNode, ...]
    edges: tuple[StreamEdge, ...]
    chaining: bool = True
    chains_mixed_max_parallelism: bool = True
    program: tuple[Transformation, ...] = field(default=(), compare=False, repr=False)
    parallelism: int = field(default=1, compare=False)
    max_parallelism: int | None = field(default=None, compare=False)
    batch: bool = False
    classes: tuple[type, ...] = field(default=(), compare=False)

    def node(self, node_id: int) -> StreamNode:
        """The node of that id."""
        return next(node for node in self.nodes if node.id == node_id)

    def inputs(self, node_id: int) -> list[StreamEdge]:
        """The edges into a node."""
        return [edge for edge in self.edges if edge.downstream == node_id]

    def outputs(self, node_id: int) -> list[StreamEdge]:
        """The edges out of a node."""
        return [edge for edge in self.edges if edge.upstream == node_id]


def stream_graph(
    transformations: Sequence[Transformation],
    *,
    parallelism: int,
    max_parallelism: int | None = None,
    chaining: bool = True,
    chain_mixed_max_parallelism: bool = True,
) -> StreamGraph:
    """The stream graph of a program; refuses what cannot run."""
    if not transformations:
        msg = "the program has no operators"
        raise EmptyProgram(msg)
    by_id = {each.id: each for each in transformations}
    operators = _operator_ids(transformations)
    nodes: dict[int, StreamNode] = {}
    for each in transformations:
        followed = max((nodes[given.upstream].parallelism for given in each.inputs), default=parallelism)
        own = each.parallelism or (followed if each.follows_input else parallelism)
        most = each.source.max_parallelism() if each.source is not None else None
        own = min(own, most) if most is not None else own
        limit = each.max_parallelism or max_parallelism or default_max_parallelism(own)
        check_parallelism(own, limit)
        nodes[each.id] = StreamNode(
            id=each.id,
            operator=operators[each.id],
            name=each.name,
            spec=each.spec,
            parallelism=own,
            max_parallelism=limit,
            output_type=each.output_type,
            key_type=each.key_type,
            side_types=dict(each.side_types),
            source=each.source,
            sink=each.sink,
            uid=each.uid,
            chaining=each.chaining,
            slot_group=each.slot_group or _inherited_group(each, nodes),
            description=each.description,
            traits=each.traits,
        )
    edges = [
        StreamEdge(
            upstream=given.upstream,
            downstream=each.id,
            side=given.side,
            tag=given.tag,
            partitioner=_decided(given, nodes[each.id], by_id, nodes),
        )
        for each in by_id.values()
        for given in each.inputs
    ]
    return StreamGraph(
        tuple(nodes.values()),
        tuple(edges),
        chaining,
        chain_mixed_max_parallelism,
        tuple(transformations),
        parallelism,
        max_parallelism,
    )


def _inherited_group(each: Transformation, nodes: Mapping[int, StreamNode]) -> str:
    """Flink's rule: the group of the inputs when they agree, else the default one."""
    groups = {nodes[given.upstream].slot_group for given in each.inputs}
    return groups.pop() if len(groups) == 1 else DEFAULT_SLOT_GROUP


def _decided(
    given: Input, downstream: StreamNode, program: Mapping[int, Transformation], nodes: Mapping[int, StreamNode]
) -> Partitioner:
    partitioner, upstream = given.partitioner, nodes[given.upstream]
    same = upstream.parallelism == downstream.parallelism
    if isinstance(partitioner, ElidedHash):
        in_place = _in_place(given, downstream, program, nodes)
        return partitioner if in_place else Hash(partitioner.key, downstream.max_parallelism)
    if partitioner is None:
        return Forward() if same else Rebalance()
    if isinstance(partitioner, Forward) and not same:
        msg = (
            f"forward from '{upstream.name}' (parallelism {upstream.parallelism}) to '{downstream.name}' "
            f"(parallelism {downstream.parallelism}) is not possible"
        )
        raise UserError(
            msg,
            hint="use rebalance(), or give both the same parallelism",
        )
    if isinstance(partitioner, Hash):
        return Hash(partitioner.key, downstream.max_parallelism)
    return partitioner


def _in_place(
    given: Input, downstream: StreamNode, program: Mapping[int, Transformation], nodes: Mapping[int, StreamNode]
) -> bool:
    """Whether records come straight from a keyed operator whose subtasks have the key groups of those they go to."""
    upstream = nodes[given.upstream]
    if upstream.parallelism != downstream.parallelism or upstream.max_parallelism != downstream.max_parallelism:
        return False
    if upstream.key_type is not None:
        return True
    inputs = program[given.upstream].inputs
    return bool(inputs) and all(
        each.partitioner is None and _in_place(each, downstream, program, nodes) for each in inputs
    )


def _operator_ids(transformations: Sequence[Transformation]) -> dict[int, str]:
    """An id for each operator: from its uid, or from its kind, its place and the ids of its inputs."""
    found: dict[int, str] = {}
    uids: dict[str, str] = {}
    for place, each in enumerate(transformations):
        if each.uid is not None:
            if each.uid in uids:
                raise UidTaken(each.uid, uids[each.uid], each.name)
            uids[each.uid] = each.name
        if each.uid_hash is not None:
            if each.uid_hash in found.values():
                raise UidTaken(each.uid_hash, "another operator", each.name)
            found[each.id] = each.uid_hash
            continue
        if each.uid is not None:
            found[each.id] = operator_id(each.uid)
            continue
        inputs = ",".join(f"{found[given.upstream]}/{given.side}/{given.tag}" for given in each.inputs)
        found[each.id] = _hashed(f"place:{place}:{type(each.spec).__name__}({inputs})")
    return found


def operator_id(uid: str) -> str:
    """The id of the operator that has a uid."""
    return _hashed(f"uid:{uid}")


def _hashed(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
