"""CREATE, ALTER, DROP, DESCRIBE and SHOW CREATE MODEL.

Promises: a model's provider is not called before the model predicts, so a model can be created before its server runs;
results have Flink's columns; secrets of options are not shown.
Does not know: providers."""

from __future__ import annotations

from dataclasses import replace

from millstream.sql.catalog.catalog import Catalogs, ColumnDefinition
from millstream.sql.catalog.models import ModelDefinition
from millstream.sql.ddl.formatting import format_column, format_options, quote_name, quote_string
from millstream.sql.ddl.results import OK, StatementResult, make_string_result
from millstream.sql.errors import CatalogError, SqlValidationError
from millstream.sql.syntax import tree as s
from millstream.sql.types import data_types as t


class ModelStatements:
    """Executes statements about models."""

    def __init__(self, catalogs: Catalogs) -> None:
        self._catalogs = catalogs
        self._models = catalogs.models

    def create(self, node: s.CreateModel) -> StatementResult:
        """CREATE MODEL."""
        if not node.options:
            message = f"model '{'.'.join(node.name)}' has no options"
            raise SqlValidationError(message, at=node.at, hint="write WITH ('provider' = 'openai', ...)")
        model = ModelDefinition(
            _build_columns(node.input), _build_columns(node.output), dict(node.options), node.comment
        )
        self._models.add(node.name, model, temporary=node.temporary, if_not_exists=node.if_not_exists, at=node.at)
        return OK

    def alter(self, node: s.Alter) -> StatementResult:
        """ALTER MODEL ... SET, RESET or RENAME TO."""
        if node.if_exists and self._models.find(node.name, node.at) is None:
            return OK
        model = self._models.get(node.name, node.at)
        match node.action:
            case s.SetOptions(options):
                self._models.replace(node.name, replace(model, options={**model.options, **dict(options)}))
            case s.ResetOptions(keys):
                kept = {key: value for key, value in model.options.items() if key not in keys}
                self._models.replace(node.name, replace(model, options=kept))
            case s.Rename(target):
                self._rename(node, model, target)
            case _:
                message = "a model can be altered with SET, RESET and RENAME TO only"
                raise SqlValidationError(message, at=node.at)
        return OK

    def _rename(self, node: s.Alter, model: ModelDefinition, target: tuple[str, ...]) -> None:
        full_name = self._catalogs.full_name(node.name, node.at)
        new_name = (*full_name[:2], target[-1])
        if len(target) > 1 and self._catalogs.full_name(target, node.at) != new_name:
            message = f"model '{'.'.join(node.name)}' cannot be moved to another database"
            raise CatalogError(message, at=node.at)
        temporary = full_name in self._catalogs.temporary_models
        self._models.add(new_name, model, temporary=temporary, at=node.at)
        self._models.drop(full_name, temporary=temporary, if_exists=False, at=node.at)

    def drop(self, node: s.Drop) -> None:
        """DROP MODEL."""
        self._models.drop(node.name, temporary=node.temporary, if_exists=node.if_exists, at=node.at)

    def describe(self, node: s.Describe) -> StatementResult:
        """DESCRIBE MODEL: the input columns, then the output columns."""
        model = self._models.get(node.name, node.at)
        columns = [*((column, True) for column in model.input), *((column, False) for column in model.output)]
        rows = [(column.name, str(column.type.nullable()), column.type.null, is_input) for column, is_input in columns]
        names, types = ["name", "type", "null", "is input"], [t.STRING, t.STRING, t.BOOLEAN, t.BOOLEAN]
        if not any(column.comment for column, _ in columns):
            return StatementResult(t.row_of(names, types, null=False), tuple(rows))
        schema = t.row_of([*names, "comment"], [*types, t.STRING], null=False)
        return StatementResult(
            schema, tuple((*row, column.comment) for row, (column, _) in zip(rows, columns, strict=True))
        )

    def show_create(self, node: s.Show) -> StatementResult:
        """SHOW CREATE MODEL."""
        model = self._models.get(node.name, node.at)
        full_name = self._catalogs.full_name(node.name, node.at)
        temporary = "TEMPORARY " if full_name in self._catalogs.temporary_models else ""
        lines = [f"CREATE {temporary}MODEL {'.'.join(map(quote_name, full_name))}"]
        for word, columns in (("INPUT", model.input), ("OUTPUT", model.output)):
            if columns:
                lines.append(f"{word} ({', '.join(map(format_column, columns))})")
        if model.comment:
            lines.append(f"COMMENT {quote_string(model.comment)}")
        if model.options:
            lines.append(f"WITH (\n  {format_options(model.options)}\n)")
        return make_string_result(["result"], [("\n".join(lines) + "\n",)])


def _build_columns(nodes: tuple[s.ColumnDef, ...]) -> tuple[ColumnDefinition, ...]:
    columns: list[ColumnDefinition] = []
    for node in nodes:
        if node.type is None or node.primary_key:
            message = f"column '{node.name}' of a model must have a name and a type only"
            raise SqlValidationError(message, at=node.at)
        if any(column.name == node.name for column in columns):
            message = f"column '{node.name}' is defined twice"
            raise SqlValidationError(message, at=node.at)
        key = (node.metadata_key or node.name) if node.metadata else None
        columns.append(ColumnDefinition(node.name, node.type, None, key, node.virtual, node.comment))
    return tuple(columns)
