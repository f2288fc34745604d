"""Physical plans as JSON, and back: nothing is planned again.

Promises: what is read is what was written, operator by operator, with the uids it had; only sources, sinks and lookups
are made anew, by the connectors of their tables, and must fit what was written. A plan that holds what cannot be
written (streams of a program, functions without a name) is refused when it is compiled.
Does not know: sessions, files; where a table's definition comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from millstream.errors import UserError
from millstream.job.traits import OperatorTraits
from millstream.sql.catalog.catalog import TableDefinition
from millstream.sql.compiled.codec import Reader, Writer
from millstream.sql.compiled.objects import Tables
from millstream.sql.compiled.secrets import hint_references
from millstream.sql.connector.lookup import TableLookup
from millstream.sql.connector.table_connector import TableContext
from millstream.sql.connectors.registry import connector_of
from millstream.sql.errors import SqlNotSupported
from millstream.sql.logical import nodes as l
from millstream.sql.logical.patterns import MatchDescription
from millstream.sql.operators.join.lookup_join import LookupJoinSpec
from millstream.sql.operators.rank.sort import MaterializeSpec
from millstream.sql.physical.identity.identity import identities, inputs_first
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
    """An operator of a compiled plan is not what this release, or a table, makes of it now."""

    hint = "compile the statement again; 'millstream savepoint check' tells what a savepoint keeps of the new plan"

    def __init__(self, uid: str, what: str) -> None:
        self.uid, self.what = uid, what
        super().__init__(f"operator '{uid}' of the compiled plan does not fit any more: {what}")


def written(operations: Sequence[Operation], writer: Writer) -> list[dict[str, Any]]:
    """The nodes of some plans, each after those it reads."""
    found = identities(operations)
    numbers: dict[int, int] = {}
    nodes: list[dict[str, Any]] = []
    for operation in inputs_first(operations):
        numbers[id(operation)] = len(numbers) + 1
        nodes.append(_node(operation, found[id(operation)], numbers, writer))
    return nodes


def _node(operation: Operation, who: Identity, numbers: Mapping[int, int], writer: Writer) -> dict[str, Any]:
    if operation.stream is not None or (operation.source is not None and not _can_be_made(operation)):
        message = f"the plan reads {operation.detail}, which is of this program and in no catalog"
        raise SqlNotSupported(message, hint="read a table with a connector")
    if isinstance(operation.spec, MaterializeSpec):
        message = "plans of batch jobs cannot be compiled"
        raise SqlNotSupported(message, hint="a batch is planned anew when it runs: it has no state to keep")
    node: dict[str, Any] = {
        "id": numbers[id(operation)],
        "type": operation.name,
        "description": operation.detail,
        "uid": who.uid,
        "traits": who.traits.to_json(),
        "inputs": [
            {"node": numbers[id(each)], "distribution": where.kind, "keys": list(where.keys)}
            for each, where in zip(operation.inputs, operation.distributions, strict=True)
        ],
        "schema": writer.plain(operation.schema),
        "changelog_mode": operation.mode.value,
        "upsert_keys": [list(each) for each in sorted(operation.upsert_keys)],
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
        node["table"] = _origin(operation, origin)
    return node


def _can_be_made(operation: Operation) -> bool:
    return isinstance(operation.source, l.Values) or isinstance(operation.origin, ScanOrigin)


def _origin(operation: Operation, origin: Origin) -> dict[str, Any]:
    role = "source" if operation.source is not None else "sink" if operation.sink is not None else "columns"
    made: dict[str, Any] = {"name": list(origin.name), "hints": hint_references(origin.hints), "role": role}
    match origin:
        case ScanOrigin(wanted=wanted):
            made["wanted"] = wanted
        case LookupOrigin(columns=columns, kept=kept):
            made |= {"role": "lookup", "columns": list(columns), "kept": None if kept is None else list(kept)}
    return made


class PlanReader:
    """Makes operations of nodes. `tables` finds a table by its name, `context` is its connector's view of it."""

    def __init__(self, reader: Reader, tables: Tables, context: Contexts) -> None:
        self._reader, self._tables, self._context = reader, tables, context

    def read(self, nodes: Sequence[Mapping[str, Any]]) -> list[Operation]:
        """The plans of the nodes' sinks."""
        found: dict[int, Operation] = {}
        for node in nodes:
            found[node["id"]] = self._operation(node, found)
        return [each for each in found.values() if each.sink is not None]

    def _operation(self, node: Mapping[str, Any], known: Mapping[int, Operation]) -> Operation:
        inputs = tuple(known[each["node"]] for each in node["inputs"])
        made = Operation(
            node["type"],
            node["description"],
            self._reader.value(node["schema"]),
            inputs,
            tuple(Distribution(each["distribution"], tuple(each["keys"])) for each in node["inputs"]),
            mode=ChangelogMode(node["changelog_mode"]),
            upsert_keys=frozenset(tuple(each) for each in node["upsert_keys"]),
            parallelism=node["parallelism"],
            identity=Identity(node["uid"], OperatorTraits.from_json(node["traits"])),
        )
        if "pattern" in node:
            description: MatchDescription = self._reader.value(node["pattern"])
            spec = match_spec(description, inputs[0].schema, node["zone"])
            return replace(made, spec=spec, origin=PatternOrigin(description, node["zone"]))
        made = replace(made, spec=self._reader.value(node["operator"]))
        if "values" in node:
            return replace(made, source=self._reader.value(node["values"]))
        return made if "table" not in node else self._with_table(made, node)

    def _with_table(self, made: Operation, node: Mapping[str, Any]) -> Operation:
        table = node["table"]
        name = tuple(table["name"])
        hints = self._tables.hints(name, table["hints"])
        definition = self._tables.definition(name)
        context = self._context(name, definition, hints)
        match table["role"]:
            case "source":
                origin = ScanOrigin(name, definition, hints, _tuples(table["wanted"]))
                return replace(made, source=_source(made, context, origin), origin=origin)
            case "sink":
                connector = connector_of(context)
                if connector.write is None:
                    raise _unlike(made, f"connector '{connector.name}' cannot be written to")
                return replace(made, sink=connector.write(context).sink, origin=Origin(name, definition, hints))
            case "lookup":
                kept = None if table["kept"] is None else tuple(table["kept"])
                asked = LookupOrigin(name, definition, hints, tuple(table["columns"]), kept)
                said = node["lookup"]
                schema, found = self._reader.value(said["schema"]), _lookup(made, context, asked)
                lookup = replace(found, schema=schema, asynchronous=said["asynchronous"])
                return replace(made, spec=replace(made.spec, lookup=lookup), origin=asked)
        return replace(made, origin=ScanOrigin(name, definition, hints, _tuples(table["wanted"])))


def _source(made: Operation, context: TableContext, origin: ScanOrigin) -> Any:
    connector = connector_of(context)
    if connector.read is None:
        raise _unlike(made, f"connector '{connector.name}' cannot be read")
    found, enter = narrow_source(connector.read(context), origin)
    if found.schema != made.schema or enter != made.spec:
        raise _unlike(made, f"it read {made.schema}, and its table now has {found.schema}")
    if found.mode is not made.mode:
        raise _unlike(made, f"its table told {made.mode.value}, and now tells {found.mode.value}")
    return found.source


def _lookup(made: Operation, context: TableContext, origin: LookupOrigin) -> TableLookup:
    connector = connector_of(context)
    found = None if connector.lookup is None else connector.lookup(context, origin.columns)
    if found is None:
        raise _unlike(made, f"connector '{connector.name}' cannot look up {', '.join(origin.columns)}")
    if origin.kept is None:
        return found
    slim = None if found.lookup is None else found.lookup.narrowed(origin.kept)
    if slim is None:
        raise _unlike(made, f"connector '{connector.name}' cannot leave columns out")
    return replace(found, lookup=slim)


def _unlike(made: Operation, what: str) -> PlanNoLongerFits:
    assert made.identity is not None
    return PlanNoLongerFits(made.identity.uid, what)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
