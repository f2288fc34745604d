"""JSON form of physical plans.

Promises: reading returns what was written, operator by operator, with the same uids; nothing is planned again. Only
sources, sinks and lookups are created again, by the connectors of their tables, and must match what was written. A plan
with parts that cannot be written (streams of a program, unregistered functions) is refused when it is compiled.
Does not know: sessions, files, catalogs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from millstream.errors import UserError
from millstream.job.traits import OperatorTraits
from millstream.sql.catalog.catalog import TableDefinition
from millstream.sql.compiled.codec import Reader, Writer
from millstream.sql.compiled.objects import Tables
from millstream.sql.compiled.secrets import write_hints
from millstream.sql.connector.lookup import TableLookup
from millstream.sql.connector.table_connector import TableContext
from millstream.sql.connectors.registry import find_connector
from millstream.sql.errors import SqlNotSupported
from millstream.sql.logical import nodes as l
from millstream.sql.logical.patterns import MatchDescription
from millstream.sql.operators.join.lookup_join import LookupJoinSpec
from millstream.sql.operators.rank.sort import MaterializeSpec
from millstream.sql.physical.identity.identity import assign_identities, order_inputs_first
from millstream.sql.physical.nodes import (
    Distribution,
    Identity,
    LookupOrigin,
    Operation,
    Origin,
    PatternOrigin,
    ScanOrigin,
)
from millstream.sql.physical.planning.match import match_spec
from millstream.sql.physical.planning.tables import narrow_source
from millstream.sql.types.changelog_mode import ChangelogMode

Contexts = Callable[[tuple[str, ...], TableDefinition, tuple[tuple[str, str], ...]], TableContext]


class PlanNoLongerFits(UserError):
    """An operator of a compiled plan does not match this release, or its table, any more."""

    hint = "compile the statement again; 'millstream savepoint check' shows which state the new plan keeps"

    def __init__(self, uid: str, reason: str) -> None:
        self.uid, self.what = uid, reason
        super().__init__(f"operator '{uid}' of the compiled plan cannot be created any more: {reason}")


def write_nodes(operations: Sequence[Operation], writer: Writer) -> list[dict[str, Any]]:
    """Encode the nodes of plans, each after its inputs."""
    identities = assign_identities(operations)
    numbers: dict[int, int] = {}
    nodes: list[dict[str, Any]] = []
    for operation in order_inputs_first(operations):
        numbers[id(operation)] = len(numbers) + 1
        nodes.append(_write_node(operation, identities[id(operation)], numbers, writer))
    return nodes


def _write_node(operation: Operation, identity: Identity, numbers: Mapping[int, int], writer: Writer) -> dict[str, Any]:
    if operation.stream is not None or (operation.source is not None and not _can_be_created(operation)):
        message = f"the plan reads {operation.detail}, which is part of this program and not in a catalog"
        raise SqlNotSupported(message, hint="read a table with a connector")
    if isinstance(operation.spec, MaterializeSpec):
        message = "plans of batch jobs cannot be compiled"
        raise SqlNotSupported(message, hint="a batch query is planned each time it runs; it has no state to keep")
    node: dict[str, Any] = {
        "id": numbers[id(operation)],
        "type": operation.name,
        "description": operation.detail,
        "uid": identity.uid,
        "traits": identity.traits.to_json(),
        "inputs": [
            {"node": numbers[id(input_operation)], "distribution": distribution.kind, "keys": list(distribution.keys)}
            for input_operation, distribution in zip(operation.inputs, operation.distributions, strict=True)
        ],
        "schema": writer.plain(operation.schema),
        "changelog_mode": operation.mode.value,
        "upsert_keys": [list(input_operation) for input_operation in sorted(operation.upsert_keys)],
        "parallelism": operation.parallelism,
    }
    spec, origin = operation.spec, operation.origin
    if isinstance(origin, PatternOrigin):
        return {**node, "pattern": writer.plain(origin.description), "zone": origin.zone}
    if isinstance(spec, LookupJoinSpec):
        node["lookup"] = {"schema": writer.plain(spec.lookup.schema), "asynchronous": spec.lookup.asynchronous}
        spec = replace(spec, lookup=None)  # type: ignore[arg-type]
    node["operator"] = writer.plain(spec)
    if isinstance(operation.source, l.Values):
        node["values"] = writer.plain(operation.source)
    if isinstance(origin, Origin):
        node["table"] = _write_origin(operation, origin)
    return node


def _can_be_created(operation: Operation) -> bool:
    return isinstance(operation.source, l.Values) or isinstance(operation.origin, ScanOrigin)


def _write_origin(operation: Operation, origin: Origin) -> dict[str, Any]:
    role = "source" if operation.source is not None else "sink" if operation.sink is not None else "columns"
    entry: dict[str, Any] = {"name": list(origin.name), "hints": write_hints(origin.hints), "role": role}
    match origin:
        case ScanOrigin(wanted=wanted):
            entry["wanted"] = wanted
        case LookupOrigin(columns=columns, kept=kept):
            entry |= {"role": "lookup", "columns": list(columns), "kept": None if kept is None else list(kept)}
    return entry


class PlanReader:
    """Creates operations from nodes. `tables` finds a table by its name, `context` is its connector's view of it."""

    def __init__(self, reader: Reader, tables: Tables, context: Contexts) -> None:
        self._reader, self._tables, self._context = reader, tables, context

    def read(self, nodes: Sequence[Mapping[str, Any]]) -> list[Operation]:
        """Return the plans of the nodes' sinks."""
        operations: dict[int, Operation] = {}
        for node in nodes:
            operations[node["id"]] = self._operation(node, operations)
        return [operation for operation in operations.values() if operation.sink is not None]

    def _operation(self, node: Mapping[str, Any], operations: Mapping[int, Operation]) -> Operation:
        inputs = tuple(operations[entry["node"]] for entry in node["inputs"])
        operation = Operation(
            node["type"],
            node["description"],
            self._reader.value(node["schema"]),
            inputs,
            tuple(Distribution(entry["distribution"], tuple(entry["keys"])) for entry in node["inputs"]),
            mode=ChangelogMode(node["changelog_mode"]),
            upsert_keys=frozenset(tuple(key) for key in node["upsert_keys"]),
            parallelism=node["parallelism"],
            identity=Identity(node["uid"], OperatorTraits.from_json(node["traits"])),
        )
        if "pattern" in node:
            description: MatchDescription = self._reader.value(node["pattern"])
            spec = match_spec(description, inputs[0].schema, node["zone"])
            return replace(operation, spec=spec, origin=PatternOrigin(description, node["zone"]))
        operation = replace(operation, spec=self._reader.value(node["operator"]))
        if "values" in node:
            return replace(operation, source=self._reader.value(node["values"]))
        return operation if "table" not in node else self._with_table(operation, node)

    def _with_table(self, operation: Operation, node: Mapping[str, Any]) -> Operation:
        table = node["table"]
        name = tuple(table["name"])
        hints = self._tables.hints(name, table["hints"])
        definition = self._tables.definition(name)
        context = self._context(name, definition, hints)
        match table["role"]:
            case "source":
                origin = ScanOrigin(name, definition, hints, _to_tuples(table["wanted"]))
                return replace(operation, source=_create_source(operation, context, origin), origin=origin)
            case "sink":
                connector = find_connector(context)
                if connector.write is None:
                    raise _create_mismatch(operation, f"connector '{connector.name}' cannot be written to")
                return replace(operation, sink=connector.write(context).sink, origin=Origin(name, definition, hints))
            case "lookup":
                kept = None if table["kept"] is None else tuple(table["kept"])
                origin_of_lookup = LookupOrigin(name, definition, hints, tuple(table["columns"]), kept)
                stored_lookup = node["lookup"]
                schema, table_lookup = (
                    self._reader.value(stored_lookup["schema"]),
                    _create_lookup(operation, context, origin_of_lookup),
                )
                lookup = replace(table_lookup, schema=schema, asynchronous=stored_lookup["asynchronous"])
                return replace(operation, spec=replace(operation.spec, lookup=lookup), origin=origin_of_lookup)
        return replace(operation, origin=ScanOrigin(name, definition, hints, _to_tuples(table["wanted"])))


def _create_source(operation: Operation, context: TableContext, origin: ScanOrigin) -> Any:
    connector = find_connector(context)
    if connector.read is None:
        raise _create_mismatch(operation, f"connector '{connector.name}' cannot be read")
    table_source, enter = narrow_source(connector.read(context), origin)
    if table_source.schema != operation.schema or enter != operation.spec:
        raise _create_mismatch(operation, f"it reads {operation.schema}, but its table now has {table_source.schema}")
    if table_source.mode is not operation.mode:
        raise _create_mismatch(
            operation, f"its table emitted {operation.mode.value}, but now emits {table_source.mode.value}"
        )
    return table_source.source


def _create_lookup(operation: Operation, context: TableContext, origin: LookupOrigin) -> TableLookup:
    connector = find_connector(context)
    table_lookup = None if connector.lookup is None else connector.lookup(context, origin.columns)
    if table_lookup is None:
        raise _create_mismatch(operation, f"connector '{connector.name}' cannot look up {', '.join(origin.columns)}")
    if origin.kept is None:
        return table_lookup
    projected = None if table_lookup.lookup is None else table_lookup.lookup.project(origin.kept)
    if projected is None:
        raise _create_mismatch(operation, f"connector '{connector.name}' cannot leave columns out")
    return replace(table_lookup, lookup=projected)


def _create_mismatch(operation: Operation, reason: str) -> PlanNoLongerFits:
    assert operation.identity is not None
    return PlanNoLongerFits(operation.identity.uid, reason)


def _to_tuples(value: Any) -> Any:
    return tuple(map(_to_tuples, value)) if isinstance(value, list) else value
