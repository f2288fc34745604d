"""Translation of physical plans to transformations of a program.

Promises: each operation is added once, even if several others read it; rows of one key stay in order from source to
sink; an operator has the uid of its plan.
Does not know: planning, jobs."""

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
from millstream.sql.columns import create_external_converter, create_row_type_info
from millstream.sql.evaluation.evaluate import evaluate_constant
from millstream.sql.logical import nodes as l
from millstream.sql.operators.base import select_key_columns
from millstream.sql.physical.identity.identity import Identities, assign_identities
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
        """Add operations and those before them, each with a uid of its own, and return the inputs that read their
        rows."""
        taken_uids = [
            transformation.uid
            for transformation in self._program.transformations.values()
            if transformation.uid is not None
        ]
        self._identities.update(assign_identities(operations, taken_uids))
        return [self._add(operation) for operation in operations]

    def _add(self, operation: Operation) -> tuple[Input, ...]:
        translated = self._done.get(id(operation))
        if translated is None:
            translated = self._done[id(operation)] = (operation, self._translate(operation))
        return translated[1]

    def _translate(self, operation: Operation) -> tuple[Input, ...]:
        if operation.stream is not None:
            inputs: tuple[Input, ...] = operation.stream(self._program)
            return inputs
        type_info = create_row_type_info(operation.schema)
        identity = self._identities[id(operation)]
        attributes: dict[str, Any] = {"uid": identity.uid, "traits": identity.traits}
        if operation.source is not None:
            source = self._values(operation.source) if isinstance(operation.source, l.Values) else operation.source
            spec = SourceSpec(source, WatermarkStrategy.no_watermarks())
            name = _shorten_name(f"Source: {operation.name}", operation.detail)
            if operation.spec is None:
                transformation = self._program.add(
                    name, spec, type_info, source=source, parallelism=operation.parallelism, **attributes
                )
                return (Input(transformation),)
            number = self._program.add(
                name, spec, source.type_info(), source=source, parallelism=operation.parallelism, **attributes
            )
            attributes = {"uid": f"{identity.uid}/rows", "traits": OperatorTraits(identity.traits.scope, "Rows")}
            rows = self._program.add(
                "Rows", operation.spec, type_info, (Input(number),), follows_input=True, **attributes
            )
            return (Input(rows),)
        inputs = tuple(
            Input(
                upstream.upstream,
                side if operation.name != "Union" else 0,
                upstream.tag,
                self._create_partitioner(operation, side, upstream),
            )
            for side, input_operation in enumerate(operation.inputs)
            for upstream in self._add(input_operation)
        )
        first = operation.distributions[0]
        is_keyed = first.kind == "hash"
        key = select_key_columns(first.keys, operation.inputs[0].schema).key_type if is_keyed else None
        name = _shorten_name(operation.name, operation.detail)
        if is_keyed:
            attributes["key_type"] = key
        if operation.sink is not None:
            number = self._program.add(
                name,
                SinkSpec(operation.sink),
                type_info,
                inputs,
                sink=operation.sink,
                follows_input=True,
                parallelism=operation.parallelism,
                **attributes,
            )
            return (Input(number),)
        is_single = first.kind == "single"
        number = self._program.add(
            name,
            operation.spec,
            type_info,
            inputs,
            parallelism=1 if is_single else operation.parallelism,
            follows_input=not is_keyed and not is_single,
            **attributes,
        )
        return (Input(number),)

    def _create_partitioner(self, operation: Operation, side: int, upstream: Input) -> Partitioner | None:
        distribution, input_operation = operation.distributions[side], operation.inputs[side]
        match distribution.kind:
            case "hash":
                key = select_key_columns(distribution.keys, input_operation.schema)
                return ElidedHash(key) if self._placements.in_place(operation, side) else Hash(key)
            case "single":
                return Global()
        return upstream.partitioner

    def _values(self, node: l.Values) -> CollectionSource:
        to_external = [create_external_converter(data_type, keep_nanoseconds=True) for data_type in node.schema.types]
        rows = []
        for row in node.rows:
            values = [evaluate_constant(expr, now=self._now, zone=self._zone) for expr in row]
            rows.append(tuple(v if s is None or v is None else s(v) for v, s in zip(values, to_external, strict=True)))
        data_type = create_row_type_info(node.schema)
        return CollectionSource(data_type.conform(rows), data_type)


def _shorten_name(name: str, detail: str) -> str:
    whole = f"{name}({detail})" if detail else name
    return whole if len(whole) <= _MAX_NAME else f"{whole[: _MAX_NAME - 3]}..."
