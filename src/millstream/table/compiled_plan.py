"""CompiledPlan: a plan that can be kept and run later.

Promises: the operators of the plan as JSON, with their uids and what their state is made of; running it later plans
nothing again, so a release that would plan the statement in another way runs it as it was, and finds its state. An
operator that this release would keep the state of in another form is refused by name.
Does not know: how parts of plans are written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from millstream import __version__
from millstream.cluster.declared_state import find_built_tables
from millstream.config.secrets import hidden_in
from millstream.files.access import opener
from millstream.graph.execution_plan import execution_plan
from millstream.graph.explain import flink_json
from millstream.graph.job_graph import job_graph
from millstream.sql.compiled.codec import Reader, UnreadablePlan, Writer
from millstream.sql.compiled.objects import NamedFunctions, Tables, written_tables
from millstream.sql.compiled.stored import PlanNoLongerFits, PlanReader, written
from millstream.sql.errors import SqlNotSupported, SqlValidationError
from millstream.sql.logical import nodes as l
from millstream.sql.physical.explain import explained_operations
from millstream.sql.physical.nodes import Operation
from millstream.sql.syntax import tree as s
from millstream.sql.syntax.lexer import tokenize
from millstream.sql_options import PLAN_FORCE_RECOMPILE
from millstream.state.deltas import IncompatibleState, TableSchema
from millstream.table.explain_detail import ExplainDetail
from millstream.table.plan_reference import CannotUsePlanFile, PlanReference, local_path
from millstream.table.table_result import TableResult

if TYPE_CHECKING:
    from millstream.table.table_environment import TableEnvironment

_VERSION = 2  # since 2 a table may have "secrets", and a hint may be a reference
_LISTED = ("tables", "nodes")


def insert_texts(node: s.Statement, text: str) -> list[str]:
    """The texts of the INSERT statements that a statement of `text` consists of."""
    if isinstance(node, s.Insert):
        inserts: tuple[s.Insert, ...] = (node,)
        ends = [len(text)]
    elif isinstance(node, s.StatementSet):
        inserts = node.inserts
        closing = max(token.start for token in tokenize(text) if token.kind == "word" and token.key == "END")
        ends = [*(each.at for each in inserts[1:]), closing]
    else:
        message = "only INSERT statements and statement sets can be compiled"
        raise SqlNotSupported(message, at=node.at)
    return [text[each.at : end].rstrip().rstrip(";") for each, end in zip(inserts, ends, strict=True)]


class CompiledPlan:
    """Inserts that were planned."""

    def __init__(self, t_env: TableEnvironment, content: Mapping[str, Any], operations: Sequence[Operation]) -> None:
        self._t_env, self._content, self._operations = t_env, content, operations

    @staticmethod
    def compiled(t_env: TableEnvironment, plans: Sequence[l.Plan], texts: Sequence[str]) -> CompiledPlan:
        """Plan inserts; `texts` are kept for people to read."""
        if t_env._batch():
            message = "plans of batch jobs cannot be compiled"
            raise SqlNotSupported(message, hint="a batch is planned anew when it runs: it has no state to keep")
        session = t_env._session()
        operations = t_env._planner().plan(plans)
        writer = Writer(NamedFunctions(session.catalogs).name)
        nodes = written(operations, writer)
        tables = written_tables(operations, writer, session.options)
        state = _tables_by_uid(t_env, operations)
        for node in nodes:
            node["state"] = [each.describe() for each in state.get(node["uid"], {}).values()]
        statements = [hidden_in(text)[0] for text in texts]
        head = {"millstream": "plan", "version": _VERSION, "release": __version__, "statements": statements}
        return CompiledPlan(t_env, {**head, "tables": tables, "nodes": nodes}, operations)

    @staticmethod
    def loaded(t_env: TableEnvironment, reference: PlanReference) -> CompiledPlan:
        """A plan that was compiled before."""
        session = t_env._session()
        reader = Reader(NamedFunctions(session.catalogs).found)
        try:
            content: dict[str, Any] = json.loads(reference.text())
            if content["millstream"] != "plan" or content["version"] > _VERSION:
                message = f"the plan has version {content['version']}, this release reads up to {_VERSION}"
                raise UnreadablePlan(message)
            tables = Tables(content["tables"], reader, session.catalogs, session.options)
            made = PlanReader(reader, tables, t_env._planner().tables.context)
            return CompiledPlan(t_env, content, made.read(content["nodes"]))
        except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError) as problem:
            message = f"this is no compiled plan: {problem!r}"
            raise SqlValidationError(message) from None

    def as_json_string(self) -> str:
        """The plan as JSON: a line for each table and each operator."""
        parts = [
            f' "{name}": {_lines(part) if name in _LISTED else json.dumps(part)}'
            for name, part in self._content.items()
        ]
        return "{\n" + ",\n".join(parts) + "\n}\n"

    def as_smile_bytes(self) -> bytes:
        """The plan as bytes."""
        return self.as_json_string().encode()

    def write_to_file(self, file: str, ignore_if_exists: bool = False) -> None:
        """Write the plan into a file; with 'table.plan.force-recompile', over one that is there."""
        path = local_path(str(file))
        forced = (self._t_env._session().options(PLAN_FORCE_RECOMPILE.key) or "").lower() == "true"
        if path.exists() and ignore_if_exists:
            return
        if path.exists() and not forced:
            message = f"there is a file '{file}' already"
            raise SqlValidationError(message, hint=f"name another, or set '{PLAN_FORCE_RECOMPILE.key}' = 'true'")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "w", encoding="utf-8", opener=opener) as stream:
                stream.write(self.as_json_string())
        except OSError as problem:
            raise CannotUsePlanFile(str(file), problem) from problem

    def get_flink_version(self) -> str:
        """The release that compiled the plan."""
        return str(self._content["release"])

    def print_json_string(self) -> None:
        """Print the plan as JSON."""
        print(self.as_json_string())

    def execute(self) -> TableResult:
        """Run it."""
        self._check_state()
        return self._t_env._run(self._operations)

    def explain(self, *extra_details: ExplainDetail) -> str:
        """The plan as text."""
        details = {each.name for each in extra_details}
        return explained_operations(
            self._operations,
            details,
            self._t_env._planner().settings,
            lambda: flink_json(self._t_env._graph_of_operations(self._operations)),
        )

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Print the plan as text."""
        print(self.explain(*extra_details))

    def _check_state(self) -> None:
        """Refuse if an operator would keep its state in a form that cannot read what the plan's operator wrote."""
        now = _tables_by_uid(self._t_env, self._operations)
        for node in self._content["nodes"]:
            have = now.get(node["uid"], {})
            for table in node["state"]:
                schema = have.get(table["name"])
                if schema is None:
                    raise PlanNoLongerFits(node["uid"], f"this release does not keep '{table['name']}' for it")
                try:
                    schema.resolve(table)
                except IncompatibleState as problem:
                    raise PlanNoLongerFits(node["uid"], problem.message) from None


def _lines(parts: Sequence[Any]) -> str:
    return "[" + ",".join(f"\n  {json.dumps(each)}" for each in parts) + "\n ]"


def _tables_by_uid(t_env: TableEnvironment, operations: Sequence[Operation]) -> dict[str, dict[str, TableSchema]]:
    graph = t_env._graph_of_operations(operations)
    found = find_built_tables(execution_plan(job_graph(graph, "plan")))
    return {node.uid: found[node.operator] for node in graph.nodes if node.uid is not None}
