"""CompiledPlan: a physical plan that can be stored and executed later.

Promises: the plan holds its operators as JSON, with their uids and the schema of their state. Executing it does not
plan the statement again. So a release that would plan the statement differently executes the stored plan unchanged and
restores its state. If this release stores the state of an operator in another form, the plan is refused with the name
of the operator.
Does not know: how operators are written as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from millstream import __version__
from millstream.cluster.declared_state import find_built_tables
from millstream.config.secrets import mask_statement
from millstream.files.access import opener
from millstream.graph.execution_plan import execution_plan
from millstream.graph.explain import flink_json
from millstream.graph.job_graph import job_graph
from millstream.sql.compiled.codec import Reader, UnreadablePlan, Writer
from millstream.sql.compiled.objects import NamedFunctions, Tables, write_tables
from millstream.sql.compiled.stored import PlanNoLongerFits, PlanReader, write_nodes
from millstream.sql.errors import SqlNotSupported, SqlValidationError
from millstream.sql.logical import nodes as l
from millstream.sql.physical.explain import explain_operations
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
_LIST_FIELDS = ("tables", "nodes")


def insert_texts(node: s.Statement, text: str) -> list[str]:
    """Return the texts of the INSERT statements in a statement."""
    if isinstance(node, s.Insert):
        inserts: tuple[s.Insert, ...] = (node,)
        ends = [len(text)]
    elif isinstance(node, s.StatementSet):
        inserts = node.inserts
        closing = max(token.start for token in tokenize(text) if token.type == "word" and token.key == "END")
        ends = [*(insert.at for insert in inserts[1:]), closing]
    else:
        message = "only INSERT statements and statement sets can be compiled"
        raise SqlNotSupported(message, at=node.at)
    return [text[insert.at : end].rstrip().rstrip(";") for insert, end in zip(inserts, ends, strict=True)]


class CompiledPlan:
    """A plan of inserts that can be stored as JSON and executed later, also by a newer release.

    Example:
        >>> from millstream.table import EnvironmentSettings, TableEnvironment
        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        >>> _ = t_env.execute_sql("CREATE TABLE numbers (n INT) WITH ('connector' = 'blackhole')")
        >>> plan = t_env.compile_plan_sql("INSERT INTO numbers VALUES (1), (2)")
        >>> '"uid"' in plan.as_json_string()
        True

    """

    def __init__(self, t_env: TableEnvironment, content: Mapping[str, Any], operations: Sequence[Operation]) -> None:
        self._t_env, self._content, self._operations = t_env, content, operations

    @staticmethod
    def compile(t_env: TableEnvironment, plans: Sequence[l.Plan], texts: Sequence[str]) -> CompiledPlan:
        """Compile inserts.

        Args:
            t_env: The session.
            plans: The logical plans of the inserts.
            texts: The statements, which the plan holds for its readers.

        Raises:
            SqlNotSupported: In batch mode.

        """
        if t_env._is_batch():
            message = "plans of batch jobs cannot be compiled"
            raise SqlNotSupported(message, hint="execute the statement: a batch job has no state that a plan must keep")
        session = t_env._session()
        operations = t_env._planner().plan(plans)
        writer = Writer(NamedFunctions(session.catalogs).name)
        nodes = write_nodes(operations, writer)
        tables = write_tables(operations, writer, session.options)
        state = _group_tables_by_uid(t_env, operations)
        for node in nodes:
            node["state"] = [schema.describe() for schema in state.get(node["uid"], {}).values()]
        statements = [mask_statement(text)[0] for text in texts]
        header = {"millstream": "plan", "version": _VERSION, "release": __version__, "statements": statements}
        return CompiledPlan(t_env, {**header, "tables": tables, "nodes": nodes}, operations)

    @staticmethod
    def load(t_env: TableEnvironment, reference: PlanReference) -> CompiledPlan:
        """Read a compiled plan.

        Args:
            t_env: The session, whose catalogs must hold the functions of the plan.
            reference: A file, or the plan as JSON.

        Raises:
            SqlValidationError: If the content is not a plan of millstream.

        """
        session = t_env._session()
        reader = Reader(NamedFunctions(session.catalogs).find)
        try:
            content: dict[str, Any] = json.loads(reference.text())
            if content["millstream"] != "plan" or content["version"] > _VERSION:
                message = f"the plan has version {content['version']}, this release reads up to {_VERSION}"
                raise UnreadablePlan(message)
            tables = Tables(content["tables"], reader, session.catalogs, session.options)
            plan_reader = PlanReader(reader, tables, t_env._planner().tables.context)
            return CompiledPlan(t_env, content, plan_reader.read(content["nodes"]))
        except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError) as problem:
            reason = f"the field {problem} is missing" if isinstance(problem, KeyError) else str(problem)
            message = f"{reference.name()} is not a millstream plan: {reason}"
            raise SqlValidationError(message, hint="plans compiled by Flink cannot be executed") from None

    def as_json_string(self) -> str:
        """Return the plan as JSON, with one line for each table and each operator."""
        parts = [
            f' "{name}": {_write_list(part) if name in _LIST_FIELDS else json.dumps(part)}'
            for name, part in self._content.items()
        ]
        return "{\n" + ",\n".join(parts) + "\n}\n"

    def as_smile_bytes(self) -> bytes:
        """Return the plan as UTF-8 encoded JSON, which `PlanReference.from_smile_bytes` reads."""
        return self.as_json_string().encode()

    def write_to_file(self, file: str, ignore_if_exists: bool = False) -> None:
        """Write the plan to a file.

        Args:
            file: A path on this machine.
            ignore_if_exists: Whether an existing file is left as it is. With `table.plan.force-recompile` it is
                overwritten instead.

        Raises:
            SqlValidationError: If the file exists and may not be overwritten.
            CannotUsePlanFile: If the file cannot be written.

        """
        path = local_path(str(file))
        may_overwrite = (self._t_env._session().options(PLAN_FORCE_RECOMPILE.key) or "").lower() == "true"
        if path.exists() and ignore_if_exists:
            return
        if path.exists() and not may_overwrite:
            message = f"the plan file '{file}' already exists"
            raise SqlValidationError(message, hint=f"use another path, or set '{PLAN_FORCE_RECOMPILE.key}' = 'true'")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "w", encoding="utf-8", opener=opener) as stream:
                stream.write(self.as_json_string())
        except OSError as problem:
            raise CannotUsePlanFile(str(file), problem) from problem

    def get_flink_version(self) -> str:
        """Return the release of millstream that compiled the plan."""
        return str(self._content["release"])

    def print_json_string(self) -> None:
        """Print the plan as JSON."""
        print(self.as_json_string())

    def execute(self) -> TableResult:
        """Submit the plan as a job.

        Returns:
            The result; `wait` blocks until the job has ended.

        Raises:
            PlanNoLongerFits: If this release stores the state of an operator in another form.

        """
        self._check_state()
        return self._t_env._execute_operations(self._operations)

    def explain(self, *extra_details: ExplainDetail) -> str:
        """Return the physical plan as text.

        Args:
            *extra_details: Further details to include.

        """
        details = {detail.name for detail in extra_details}
        return explain_operations(
            self._operations,
            details,
            self._t_env._planner().settings,
            lambda: flink_json(self._t_env._graph_of_operations(self._operations)),
        )

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Print what `explain` returns.

        Args:
            *extra_details: Further details to include.

        """
        print(self.explain(*extra_details))

    def _check_state(self) -> None:
        """Raise if the state of an operator of this release cannot hold what the plan's operator has written."""
        current_state = _group_tables_by_uid(self._t_env, self._operations)
        for node in self._content["nodes"]:
            current_tables = current_state.get(node["uid"], {})
            for table in node["state"]:
                schema = current_tables.get(table["name"])
                if schema is None:
                    raise PlanNoLongerFits(node["uid"], f"its state '{table['name']}' does not exist in this release")
                try:
                    schema.resolve(table)
                except IncompatibleState as problem:
                    raise PlanNoLongerFits(node["uid"], problem.message) from None


def _write_list(parts: Sequence[Any]) -> str:
    return "[" + ",".join(f"\n  {json.dumps(part)}" for part in parts) + "\n ]"


def _group_tables_by_uid(t_env: TableEnvironment, operations: Sequence[Operation]) -> dict[str, dict[str, TableSchema]]:
    graph = t_env._graph_of_operations(operations)
    tables = find_built_tables(execution_plan(job_graph(graph, "plan")))
    return {node.uid: tables[node.operator] for node in graph.nodes if node.uid is not None}
