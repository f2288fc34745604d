"""CompiledPlan: a plan that can be kept and run later.

Promises: the statements and the tables and views they read and write, as JSON; running it later plans them again, with
the operators' state found by the same places in the plan.
Does not know: jobs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.sql import syntax as s
from millstream.sql.errors import SqlNotSupported, SqlValidationError
from millstream.sql.lexer import tokens
from millstream.table.explain_detail import ExplainDetail
from millstream.table.plan_reference import PlanReference
from millstream.table.table_result import TableResult

if TYPE_CHECKING:
    from millstream.table.table_environment import TableEnvironment

_VERSION = 1


def insert_texts(node: s.Statement, text: str) -> list[str]:
    """The texts of the INSERT statements that a statement of `text` consists of."""
    if isinstance(node, s.Insert):
        inserts: tuple[s.Insert, ...] = (node,)
        ends = [len(text)]
    elif isinstance(node, s.StatementSet):
        inserts = node.inserts
        closing = max(token.start for token in tokens(text) if token.kind == "word" and token.key == "END")
        ends = [*(each.at for each in inserts[1:]), closing]
    else:
        message = "only INSERT statements and statement sets can be compiled"
        raise SqlNotSupported(message, at=node.at)
    return [text[each.at : end].rstrip().rstrip(";") for each, end in zip(inserts, ends, strict=True)]


class CompiledPlan:
    """Inserts that were planned."""

    def __init__(self, t_env: TableEnvironment, statements: Sequence[str]) -> None:
        if not statements:
            message = "only plans of SQL statements can be compiled"
            raise SqlNotSupported(message, hint="use compile_plan_sql")
        self._t_env, self._statements = t_env, list(statements)

    @staticmethod
    def loaded(t_env: TableEnvironment, reference: PlanReference) -> CompiledPlan:
        """A plan that was compiled before."""
        try:
            found: dict[str, Any] = json.loads(reference.text())
            if found["version"] != _VERSION:
                message = f"the plan has version {found['version']}, this release reads {_VERSION}"
                raise SqlValidationError(message)
            return CompiledPlan(t_env, found["statements"])
        except (ValueError, KeyError, TypeError) as problem:
            message = f"this is no compiled plan: {problem}"
            raise SqlValidationError(message) from None

    def as_json_string(self) -> str:
        """The plan as JSON."""
        return json.dumps({"millstream": "plan", "version": _VERSION, "statements": self._statements}, indent=2)

    def as_smile_bytes(self) -> bytes:
        """The plan as bytes."""
        return self.as_json_string().encode()

    def write_to_file(self, file: str, ignore_if_exists: bool = False) -> None:
        """Write the plan into a file."""
        path = Path(file)
        if path.exists():
            if ignore_if_exists:
                return
            message = f"there is a file '{file}' already"
            raise SqlValidationError(message)
        path.write_text(self.as_json_string())

    def get_flink_version(self) -> str:
        """The version of the plan's form."""
        return str(_VERSION)

    def print_json_string(self) -> None:
        """Print the plan as JSON."""
        print(self.as_json_string())

    def execute(self) -> TableResult:
        """Run it."""
        made = self._t_env.create_statement_set()
        for statement in self._statements:
            made.add_insert_sql(statement)
        return made.execute()

    def explain(self, *extra_details: ExplainDetail) -> str:
        """The plan as text."""
        made = self._t_env.create_statement_set()
        for statement in self._statements:
            made.add_insert_sql(statement)
        return made.explain(*extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Print the plan as text."""
        print(self.explain(*extra_details))
