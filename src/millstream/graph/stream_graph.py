"""The stream graph, second of the four graphs: operators and edges with parallelism, partitioners and ids.

Promises: the same program has the same graph, with the same operator ids, in every process. An id is the hash of the
uid if there is one, else of the operator's position in the program.
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
    """The program has no operators."""

    hint = "add a source and at least one operator before execute()"


class UidTaken(UserError):
    """Two operators have the same uid."""

    def __init__(self, uid: str, first: str, second: str) -> None:
        super().__init__(
            f"uid '{uid}' is used by '{first}' and by '{second}'",
            hint="state is found by its uid: use a different uid for each operator",
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
    """An edge from one operator to an input of another."""

    upstream: int
    downstream: int
    side: int
    tag: str | None
    partitioner: Partitioner


@dataclass(frozen=True)
class StreamGraph:
    """The operators of a program in the order in which they were recorded, and their edges.

    The graph was created from `program`, `parallelism` and `max_parallelism` (None: not set), so that it can be created
    again with another parallelism. `classes` are those that the program registered for untyped values."""

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
        """Return the node with an id."""
        return next(node for node in self.nodes if node.id == node_id)

    def inputs(self, node_id: int) -> list[StreamEdge]:
        """Return the edges into a node."""
        return [edge for edge in self.edges if edge.downstream == node_id]

    def outputs(self, node_id: int) -> list[StreamEdge]:
        """Return the edges out of a node."""
        return [edge for edge in self.edges if edge.upstream == node_id]


def stream_graph(
    transformations: Sequence[Transformation],
    *,
    parallelism: int,
    max_parallelism: int | None = None,
    chaining: bool = True,
    chain_mixed_max_parallelism: bool = True,
) -> StreamGraph:
    """Create the stream graph of a program; raises for a program that cannot run."""
    if not transformations:
        msg = "the program has no operators"
        raise EmptyProgram(msg)
    by_id = {transformation.id: transformation for transformation in transformations}
    operators = _operator_ids(transformations)
    nodes: dict[int, StreamNode] = {}
    for transformation in transformations:
        input_parallelism = max(
            (nodes[edge.upstream].parallelism for edge in transformation.inputs), default=parallelism
        )
        node_parallelism = transformation.parallelism or (
            input_parallelism if transformation.follows_input else parallelism
        )
        source_limit = transformation.source.max_parallelism() if transformation.source is not None else None
        node_parallelism = min(node_parallelism, source_limit) if source_limit is not None else node_parallelism
        limit = transformation.max_parallelism or max_parallelism or default_max_parallelism(node_parallelism)
        check_parallelism(node_parallelism, limit)
        nodes[transformation.id] = StreamNode(
            id=transformation.id,
            operator=operators[transformation.id],
            name=transformation.name,
            spec=transformation.spec,
            parallelism=node_parallelism,
            max_parallelism=limit,
            output_type=transformation.output_type,
            key_type=transformation.key_type,
            side_types=dict(transformation.side_types),
            source=transformation.source,
            sink=transformation.sink,
            uid=transformation.uid,
            chaining=transformation.chaining,
            slot_group=transformation.slot_group or _inherited_group(transformation, nodes),
            description=transformation.description,
            traits=transformation.traits,
        )
    edges = [
        StreamEdge(
            upstream=edge.upstream,
            downstream=transformation.id,
            side=edge.side,
            tag=edge.tag,
            partitioner=_choose_partitioner(edge, nodes[transformation.id], by_id, nodes),
        )
        for transformation in by_id.values()
        for edge in transformation.inputs
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


def _inherited_group(transformation: Transformation, nodes: Mapping[int, StreamNode]) -> str:
    """Return the slot sharing group of the inputs if they have the same, else the default one: Flink's rule."""
    groups = {nodes[edge.upstream].slot_group for edge in transformation.inputs}
    return groups.pop() if len(groups) == 1 else DEFAULT_SLOT_GROUP


def _choose_partitioner(
    edge: Input, downstream: StreamNode, program: Mapping[int, Transformation], nodes: Mapping[int, StreamNode]
) -> Partitioner:
    partitioner, upstream = edge.partitioner, nodes[edge.upstream]
    same_parallelism = upstream.parallelism == downstream.parallelism
    if isinstance(partitioner, ElidedHash):
        is_partitioned = _has_same_key_groups(edge, downstream, program, nodes)
        return partitioner if is_partitioned else Hash(partitioner.key, downstream.max_parallelism)
    if partitioner is None:
        return Forward() if same_parallelism else Rebalance()
    if isinstance(partitioner, Forward) and not same_parallelism:
        msg = (
            f"forward from '{upstream.name}' (parallelism {upstream.parallelism}) to '{downstream.name}' "
            f"(parallelism {downstream.parallelism}) is not possible"
        )
        raise UserError(
            msg,
            hint="use rebalance(), or set the same parallelism for both",
        )
    if isinstance(partitioner, Hash):
        return Hash(partitioner.key, downstream.max_parallelism)
    return partitioner


def _has_same_key_groups(
    edge: Input, downstream: StreamNode, program: Mapping[int, Transformation], nodes: Mapping[int, StreamNode]
) -> bool:
    """Return whether records come from a keyed operator whose subtasks have the same key groups as the downstream
    ones."""
    upstream = nodes[edge.upstream]
    if upstream.parallelism != downstream.parallelism or upstream.max_parallelism != downstream.max_parallelism:
        return False
    if upstream.key_type is not None:
        return True
    inputs = program[edge.upstream].inputs
    return bool(inputs) and all(
        input_edge.partitioner is None and _has_same_key_groups(input_edge, downstream, program, nodes)
        for input_edge in inputs
    )


def _operator_ids(transformations: Sequence[Transformation]) -> dict[int, str]:
    """Return the id of each operator: from its uid, or from its spec's class, its position and the ids of its
    inputs."""
    operator_ids: dict[int, str] = {}
    uids: dict[str, str] = {}
    for position, transformation in enumerate(transformations):
        if transformation.uid is not None:
            if transformation.uid in uids:
                raise UidTaken(transformation.uid, uids[transformation.uid], transformation.name)
            uids[transformation.uid] = transformation.name
        if transformation.uid_hash is not None:
            if transformation.uid_hash in operator_ids.values():
                raise UidTaken(transformation.uid_hash, "another operator", transformation.name)
            operator_ids[transformation.id] = transformation.uid_hash
            continue
        if transformation.uid is not None:
            operator_ids[transformation.id] = operator_id(transformation.uid)
            continue
        inputs = ",".join(f"{operator_ids[edge.upstream]}/{edge.side}/{edge.tag}" for edge in transformation.inputs)
        operator_ids[transformation.id] = _hash(f"place:{position}:{type(transformation.spec).__name__}({inputs})")
    return operator_ids


def operator_id(uid: str) -> str:
    """Return the id of the operator with a uid."""
    return _hash(f"uid:{uid}")


def _hash(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()
