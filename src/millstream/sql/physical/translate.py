"""Physical plans become transformations of a program.

Promises: each operation is added once, however often it is read; rows of one key stay in order from end to end; an
operator has the uid that its plan gives it.
Does not know: plans' making, jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from millstream.connectors.collection import CollectionSource
from millstream.datastream.program import Program
from millstream.event_time.watermarks import WatermarkStrategy
from millstream.graph.transformations import Input
from millstream.job.traits import OperatorTraits
from millstream.runtime.operators.sink import SinkSpec
from millstream.runtime.operators.source import SourceSpec
from millstream.runtime.partitioners import ElidedHash, Global, Hash, Partitioner
from millstream.sql.columns import external, row_type_info
from millstream.sql.evaluation.evaluate import constant
from millstream.sql.logical import nodes as l
from millstream.sql.operators.base import keys_by
from millstream.sql.physical.identity.identity import Identities, identities
from millstream.sql.physical.nodes import Operation
from millstream.sql.physical.planning.placement import Placements

_MAX_NAME = 200


class Translation:
    """Adds operations to one program."""

    def __init__(self, program: Program, *, zone: str = "UTC", now: int = 0) -> None:
        self._program = program
        self._zone, self._now = zone, now
        self._done: dict[int, tuple[Operation, tuple[Input, ...]]] = {}
        self._identities: Identities = {}
        self._placements = Placements()

    def add_all(self, operations: Sequence[Operation]) -> list[tuple[Input, ...]]:
        """The inputs that read the rows of some operations and of those before them, each with a uid of its own."""
        taken = [each.uid for each in self._program.transformations.values() if each.uid is not None]
        self._identities.update(identities(operations, taken))
        return [self._add(each) for each in operations]

    def _add(self, operation: Operation) -> tuple[Input, ...]:
        known = self._done.get(id(operation))
        if known is None:
            known = self._done[id(operation)] = (operation, self._added(operation))
        return known[1]

    def _added(self, operation: Operation) -> tuple[Input, ...]:
        if operation.stream is not None:
            inputs: tuple[Input, ...] = operation.stream(self._program)
            return inputs
        kind = row_type_info(operation.schema)
        who = self._identities[id(operation)]
        more: dict[str, Any] = {"uid": who.uid, "traits": who.traits}
        if operation.source is not None:
            source = self._values(operation.source) if isinstance(operation.source, l.Values) else operation.source
            spec = SourceSpec(source, WatermarkStrategy.no_watermarks())
            name = _named(f"Source: {operation.name}", operation.detail)
            if operation.spec is None:
                made = self._program.add(name, spec, kind, source=source, parallelism=operation.parallelism, **more)
                return (Input(made),)
            number = self._program.add(
                name, spec, source.type_info(), source=source, parallelism=operation.parallelism, **more
            )
            more = {"uid": f"{who.uid}/rows", "traits": OperatorTraits(who.traits.scope, "Rows")}
            rows = self._program.add("Rows", operation.spec, kind, (Input(number),), follows_input=True, **more)
            return (Input(rows),)
        inputs = tuple(
            Input(
                given.upstream,
                side if operation.name != "Union" else 0,
                given.tag,
                self._partitioner(operation, side, given),
            )
            for side, before in enumerate(operation.inputs)
            for given in self._add(before)
        )
        first = operation.distributions[0]
        keyed = first.kind == "hash"
        key = keys_by(first.keys, operation.inputs[0].schema).key_type if keyed else None
        name = _named(operation.name, operation.detail)
        if keyed:
            more["key_type"] = key
        if operation.sink is not None:
            number = self._program.add(
                name,
                SinkSpec(operation.sink),
                kind,
                inputs,
                sink=operation.sink,
                follows_input=True,
                parallelism=operation.parallelism,
                **more,
            )
            return (Input(number),)
        single = first.kind == "single"
        number = self._program.add(
            name,
            operation.spec,
            kind,
            inputs,
            parallelism=1 if single else operation.parallelism,
            follows_input=not keyed and not single,
            **more,
        )
        return (Input(number),)

    def _partitioner(self, operation: Operation, side: int, given: Input) -> Partitioner | None:
        where, before = operation.distributions[side], operation.inputs[side]
        match where.kind:
            case "hash":
                key = keys_by(where.keys, before.schema)
                return ElidedHash(key) if self._placements.in_place(operation, side) else Hash(key)
            case "single":
                return Global()
        return given.partitioner

    def _values(self, node: l.Values) -> CollectionSource:
        shows = [external(kind) for kind in node.schema.types]
        rows = []
        for row in node.rows:
            values = [constant(each, now=self._now, zone=self._zone) for each in row]
            rows.append(tuple(v if s is None or v is None else s(v) for v, s in zip(values, shows, strict=True)))
        kind = row_type_info(node.schema)
        return CollectionSource(kind.conform(rows), kind)


def _named(name: str, detail: str) -> str:
    whole = f"{name}({detail})" if detail else name
    return whole if len(whole) <= _MAX_NAME else f"{whole[: _MAX_NAME - 3]}..."
