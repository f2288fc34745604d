"""Statements about catalogs: CREATE, ALTER, DROP, SHOW, DESCRIBE, USE.

Promises: a statement that fails changes nothing; what SHOW and DESCRIBE answer has Flink's columns.
Does not know: queries beyond binding those of views, jobs."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from millstream.sql import syntax as s
from millstream.sql import types as t
from millstream.sql.bind.expressions import ExpressionBinder, Session
from millstream.sql.bind.queries import QueryBinder
from millstream.sql.bind.tables import scope_of
from millstream.sql.catalog import Catalog, ColumnDefinition, Database, StreamTable, TableDefinition, ViewDefinition
from millstream.sql.errors import CatalogError, SqlNotSupported, SqlValidationError, nearest
from millstream.sql.functions import registry
from millstream.sql.functions.aggregates import AGGREGATES
from millstream.sql.functions.logic import like_pattern
from millstream.sql.logical import Scan
from millstream.sql.modules import installed
from millstream.sql.parser.statements import StatementGrammar
from millstream.sql.partitions import partitions
from millstream.sql.user_functions import UserFunction


@dataclass(frozen=True)
class Answer:
    """What a statement answers: columns and rows, or just OK."""

    schema: t.RowType | None = None
    rows: tuple[tuple[Any, ...], ...] = ()


OK = Answer()


def table_of(names: list[str], rows: list[tuple[Any, ...]]) -> Answer:
    """An answer of strings."""
    kinds: list[t.DataType] = [t.STRING for _ in names]
    return Answer(t.row_of(names, kinds, null=False), tuple(rows))


class Definitions:
    """Executes statements about catalogs in one session; `text` is the statement as written."""

    def __init__(self, session: Session, wrap: Callable[[str, Any], UserFunction]) -> None:
        self._session = session
        self._catalogs = session.catalogs
        self._wrap = wrap

    def execute(self, node: s.Statement, text: str) -> Answer | None:
        """The answer; None for a statement that is not about catalogs."""
        match node:
            case s.CreateTable(query=None):
                return self.create_table(node, text)
            case s.CreateView():
                return self._create_view(node)
            case s.CreateNamespace():
                return self._create_namespace(node)
            case s.CreateFunction():
                return self._create_function(node)
            case s.Drop():
                return self._drop(node)
            case s.Alter():
                return self._alter(node, text)
            case s.Show():
                return self._show(node)
            case s.Describe():
                return self._describe(node)
            case s.Use():
                return self._use(node)
            case s.Unsupported():
                message = f"{node.what} is not supported: {node.reason}"
                raise SqlNotSupported(message, at=node.at)
            case s.Module():
                return self._module(node)
        return None

    # ------------------------------------------------------------------------------------------------------- CREATE

    def create_table(self, node: s.CreateTable, text: str) -> Answer:
        """CREATE TABLE."""
        definition = self.definition(node, text)
        self._catalogs.add_table(
            node.name,
            definition,
            temporary=node.temporary,
            if_not_exists=node.if_not_exists,
            replace_existing=node.or_replace,
            at=node.at,
        )
        return OK

    def definition(self, node: s.CreateTable, text: str, extra: tuple[ColumnDefinition, ...] = ()) -> TableDefinition:
        """The table that CREATE TABLE describes; computed columns and the watermark are checked."""
        columns: list[ColumnDefinition] = list(extra)
        base = self._liked(node)
        if base is not None:
            columns = [each for each in base.columns if each.name not in {c.name for c in node.columns}]
        pending: list[s.ColumnDef] = []
        for column in node.columns:
            if any(each.name == column.name for each in columns):
                message = f"column '{column.name}' is there twice"
                raise SqlValidationError(message, at=column.at)
            names = [*(each.name for each in columns), *(each.name for each in node.columns)]
            columns.append(self._column(column, text, names))
            if column.expr is not None:
                pending.append(column)
        options = {**({} if base is None else dict(base.options)), **dict(node.options)}
        key = node.primary_key or (() if base is None else base.primary_key)
        watermark = None if base is None else base.watermark
        made = TableDefinition(
            tuple(columns), options, watermark, key, node.constraint,
            node.partitions or (() if base is None else base.partitions),
            node.comment or (None if base is None else base.comment),
        )  # fmt: skip
        made = self._with_computed(made, pending)
        if node.watermark is not None:
            made = self._with_watermark(made, node.watermark, text)
        names = [each.name for each in made.columns]
        for name in key:
            if name not in names:
                message = f"the primary key names '{name}', which is no column"
                raise SqlValidationError(message, at=node.at, hint=nearest(name, names))
            if not next(each for each in made.columns if each.name == name).is_physical:
                message = f"the primary key names '{name}', which is no physical column"
                raise SqlValidationError(message, at=node.at)
        for name in node.partitions:
            if name not in names:
                message = f"PARTITIONED BY names '{name}', which is no column"
                raise SqlValidationError(message, at=node.at, hint=nearest(name, names))
        return made

    def _liked(self, node: s.CreateTable) -> TableDefinition | None:
        if node.like is None:
            return None
        _, found = self._catalogs.table(node.like.table, node.like.at)
        if not isinstance(found, TableDefinition):
            message = f"'{'.'.join(node.like.table)}' is not a table that LIKE can follow"
            raise SqlValidationError(message, at=node.like.at)
        excluded = {what for how, what in node.like.options if how == "EXCLUDING"}
        included = {what for how, what in node.like.options if how in ("INCLUDING", "OVERWRITING")}
        if "ALL" in excluded:
            excluded |= {"CONSTRAINTS", "OPTIONS", "PARTITIONS", "WATERMARKS", "GENERATED", "METADATA"} - included
        columns = tuple(
            each
            for each in found.columns
            if not ("GENERATED" in excluded and each.expr is not None)
            and not ("METADATA" in excluded and each.metadata_key is not None)
        )
        return replace(
            found,
            columns=columns,
            options={} if "OPTIONS" in excluded else found.options,
            primary_key=() if "CONSTRAINTS" in excluded else found.primary_key,
            partitions=() if "PARTITIONS" in excluded else found.partitions,
            watermark=None if "WATERMARKS" in excluded else found.watermark,
        )

    @staticmethod
    def _column(column: s.ColumnDef, text: str, names: Collection[str]) -> ColumnDefinition:
        if column.expr is not None:
            return ColumnDefinition(
                column.name, t.NULL, expression_text(column.expr, text, names), comment=column.comment
            )
        if column.type is None:
            message = f"column '{column.name}' has no type"
            raise SqlValidationError(message, at=column.at)
        key = (column.metadata_key or column.name) if column.metadata else None
        return ColumnDefinition(column.name, column.type, None, key, column.virtual, column.comment)

    def _with_computed(self, table: TableDefinition, pending: list[s.ColumnDef]) -> TableDefinition:
        if not pending:
            return table
        read = [each for each in table.columns if each.expr is None]
        scope = scope_of(Scan(t.row_of([c.name for c in read], [c.type for c in read], null=False), None))
        binder = ExpressionBinder(self._session, scope, clause="in a computed column")
        kinds = {column.name: binder.bind(column.expr).type for column in pending if column.expr is not None}
        columns = tuple(replace(each, type=kinds[each.name]) if each.name in kinds else each for each in table.columns)
        return replace(table, columns=columns)

    def _with_watermark(self, table: TableDefinition, node: s.WatermarkDef, text: str) -> TableDefinition:
        name = ".".join(node.column)
        names = [each.name for each in table.columns]
        if name not in names:
            message = f"the watermark is for '{name}', which is no column"
            raise SqlValidationError(message, at=node.at, hint=nearest(name, names))
        kind = table.columns[names.index(name)].type
        if not t.is_timestamp(kind) or kind.precision > 3:  # type: ignore[attr-defined]
            message = f"a watermark needs TIMESTAMP(3) or TIMESTAMP_LTZ(3), '{name}' is {kind}"
            raise SqlValidationError(message, at=node.at)
        scope = scope_of(Scan(t.row_of(names, [each.type for each in table.columns], null=False), None))
        found = ExpressionBinder(self._session, scope, clause="in a watermark").bind(node.expr)
        if not t.is_timestamp(found.type):
            message = f"the watermark of '{name}' must be a timestamp, this is {found.type}"
            raise SqlValidationError(message, at=node.expr.at)
        return replace(table, watermark=(name, expression_text(node.expr, text, names)))

    def _create_view(self, node: s.CreateView) -> Answer:
        plan = QueryBinder(self._session).query(node.query)
        names = list(plan.schema.names)
        if node.columns:
            if len(node.columns) != len(names):
                message = f"{len(node.columns)} names for {len(names)} columns"
                raise SqlValidationError(message, at=node.at)
            names = list(node.columns)
        schema = t.row_of(names, plan.schema.types, null=False)
        self._catalogs.add_table(
            node.name,
            ViewDefinition(node.text, schema, node.comment),
            temporary=node.temporary,
            if_not_exists=node.if_not_exists,
            replace_existing=node.or_replace,
            at=node.at,
        )
        return OK

    def _create_namespace(self, node: s.CreateNamespace) -> Answer:
        options = dict(node.options)
        if node.kind == "CATALOG":
            (name,) = node.name
            if name in self._catalogs.all:
                if node.if_not_exists:
                    return OK
                message = f"there is a catalog '{name}' already"
                raise CatalogError(message, at=node.at)
            kind = options.get("type")
            if kind != "generic_in_memory":
                message = f"there is no kind of catalog '{kind}'"
                raise CatalogError(message, at=node.at, hint="use 'type' = 'generic_in_memory'")
            made = Catalog(name, options.get("default-database", "default"), options)
            made.comment = node.comment
            self._catalogs.all[name] = made
            return OK
        catalog, name = (self._catalogs.current_catalog, node.name[0]) if len(node.name) == 1 else node.name
        known = self._catalogs.catalog(catalog, node.at).databases
        if name in known:
            if node.if_not_exists:
                return OK
            message = f"there is a database '{name}' in catalog '{catalog}' already"
            raise CatalogError(message, at=node.at)
        known[name] = Database(node.comment, options)
        return OK

    def _create_function(self, node: s.CreateFunction) -> Answer:
        if node.language != "PYTHON":
            message = f"functions in {node.language} are not supported"
            raise SqlNotSupported(message, at=node.at, hint="write it in Python: ... AS 'module.name' LANGUAGE PYTHON")
        function = self._loaded(node.target, node.name[-1], node.at)
        self.register_function(
            node.name,
            function,
            temporary=node.temporary,
            system=node.system,
            if_not_exists=node.if_not_exists,
            at=node.at,
        )
        return OK

    def _loaded(self, target: str, name: str, at: int | None) -> UserFunction:
        module, _, attribute = target.rpartition(".")
        try:
            found = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError, ValueError) as problem:
            message = f"function '{target}' cannot be imported: {problem}"
            raise CatalogError(
                message, at=at, hint="give module.name, and see that the module can be imported"
            ) from None
        return self._wrap(name, found)

    def register_function(
        self,
        path: tuple[str, ...],
        function: UserFunction,
        *,
        temporary: bool,
        system: bool = False,
        if_not_exists: bool = False,
        at: int | None = None,
    ) -> None:
        """Give a user's function its name."""
        full = self._catalogs.full_name(path, at)
        key = (full[0], full[1], full[2].lower())
        table: dict[Any, Any]
        place: Any
        if system:
            table, place = self._catalogs.system_functions, path[-1].lower()
        elif temporary:
            table, place = self._catalogs.temporary_functions, key
        else:
            table, place = self._catalogs.database(full[0], full[1], at).functions, key[2]
        if place in table and if_not_exists:
            return
        if place in table and not (system or temporary):
            message = f"there is a function '{'.'.join(path)}' already"
            raise CatalogError(message, at=at)
        table[place] = function

    # --------------------------------------------------------------------------------------------------- DROP, ALTER

    def _drop(self, node: s.Drop) -> Answer:
        match node.kind:
            case "TABLE" | "VIEW":
                self._catalogs.drop_table(
                    node.name, view=node.kind == "VIEW", temporary=node.temporary, if_exists=node.if_exists, at=node.at
                )
            case "FUNCTION":
                self.drop_function(
                    node.name, temporary=node.temporary, system=node.system, if_exists=node.if_exists, at=node.at
                )
            case "CATALOG":
                self._drop_catalog(node)
            case "DATABASE":
                self._drop_database(node)
        return OK

    def drop_function(
        self, path: tuple[str, ...], *, temporary: bool, system: bool, if_exists: bool, at: int | None = None
    ) -> bool:
        """Forget a user's function; False when it was not there and need not be."""
        full = self._catalogs.full_name(path, at)
        key = (full[0], full[1], full[2].lower())
        if system:
            table: dict[Any, Any] = self._catalogs.system_functions
            place: Any = path[-1].lower()
        elif temporary:
            table, place = self._catalogs.temporary_functions, key
        else:
            table, place = self._catalogs.database(full[0], full[1], at).functions, key[2]
        if place not in table:
            if if_exists:
                return False
            message = f"there is no function '{'.'.join(path)}'"
            raise CatalogError(message, at=at, hint=nearest(path[-1], self._catalogs.function_names()))
        del table[place]
        return True

    def _drop_catalog(self, node: s.Drop) -> None:
        (name,) = node.name
        if name not in self._catalogs.all:
            if node.if_exists:
                return
            self._catalogs.catalog(name, node.at)
        if name == self._catalogs.current_catalog:
            message = f"catalog '{name}' is the current one"
            raise CatalogError(message, at=node.at, hint="USE CATALOG another one first")
        del self._catalogs.all[name]

    def _drop_database(self, node: s.Drop) -> None:
        catalog, name = (self._catalogs.current_catalog, node.name[0]) if len(node.name) == 1 else node.name
        known = self._catalogs.catalog(catalog, node.at).databases
        if name not in known:
            if node.if_exists:
                return
            self._catalogs.database(catalog, name, node.at)
        if (catalog, name) == (self._catalogs.current_catalog, self._catalogs.current_database):
            message = f"database '{name}' is the current one"
            raise CatalogError(message, at=node.at, hint="USE another one first")
        if known[name].tables and not node.cascade:
            message = f"database '{name}' is not empty"
            raise CatalogError(message, at=node.at, hint="drop its tables first, or write CASCADE")
        del known[name]

    def _alter(self, node: s.Alter, text: str) -> Answer:
        match node.kind:
            case "DATABASE":
                names = (self._catalogs.current_catalog, node.name[0]) if len(node.name) == 1 else node.name
                database = self._catalogs.database(names[0], names[1], node.at)
                if node.action == "SET":
                    database.options.update(dict(node.arguments[0]))
                return OK
            case "CATALOG":
                catalog = self._catalogs.catalog(node.name[0], node.at)
                if node.action == "SET":
                    catalog.options.update(dict(node.arguments[0]))
                elif node.action == "RESET":
                    for key in node.arguments[0]:
                        catalog.options.pop(key, None)
                elif node.action == "COMMENT":
                    catalog.comment = node.arguments[0]
                return OK
            case "FUNCTION":
                found = self._loaded(node.arguments[0], node.name[-1], node.at)
                self.drop_function(node.name, temporary=False, system=False, if_exists=node.if_exists, at=node.at)
                self.register_function(node.name, found, temporary=False, at=node.at)
                return OK
        found_table = self._catalogs.find(node.name, node.at)
        if found_table is None and node.if_exists:
            return OK
        full, table = self._catalogs.table(node.name, node.at)
        if node.kind == "VIEW":
            return self._alter_view(node, full, table)
        if not isinstance(table, TableDefinition):
            message = f"'{'.'.join(node.name)}' is not a table"
            raise CatalogError(message, at=node.at)
        if node.action == "RENAME":
            return self._rename(node, full, table)
        self._catalogs.set_table(full, self._altered(node, table, text))
        return OK

    def _alter_view(self, node: s.Alter, full: tuple[str, str, str], view: Any) -> Answer:
        if not isinstance(view, ViewDefinition):
            message = f"'{'.'.join(node.name)}' is not a view"
            raise CatalogError(message, at=node.at)
        if node.action == "RENAME":
            return self._rename(node, full, view)
        if node.action == "AS":
            plan = QueryBinder(self._session).query(node.arguments[0])
            self._catalogs.set_table(full, ViewDefinition(node.arguments[1], plan.schema, view.comment))
        return OK

    def _rename(self, node: s.Alter, full: tuple[str, str, str], what: Any) -> Answer:
        target = node.arguments[0]
        new = (*full[:2], target[-1]) if len(target) == 1 else self._catalogs.full_name(target, node.at)
        temporary = full in self._catalogs.temporary
        self._catalogs.add_table(new, what, temporary=temporary, at=node.at)
        if temporary:
            del self._catalogs.temporary[full]
        else:
            del self._catalogs.database(full[0], full[1]).tables[full[2]]
        return OK

    def _altered(self, node: s.Alter, table: TableDefinition, text: str) -> TableDefinition:
        names = [each.name for each in table.columns]
        match node.action:
            case "SET":
                return replace(table, options={**table.options, **dict(node.arguments[0])})
            case "RESET":
                if "connector" in node.arguments[0]:
                    message = "the option 'connector' cannot be reset"
                    raise CatalogError(message, at=node.at)
                return replace(table, options={k: v for k, v in table.options.items() if k not in node.arguments[0]})
            case "RENAME COLUMN":
                old, new = node.arguments
                self._known(old, names, node.at)
                columns = tuple(replace(c, name=new) if c.name == old else c for c in table.columns)
                key = tuple(new if k == old else k for k in table.primary_key)
                return replace(table, columns=columns, primary_key=key)
            case "DROP WATERMARK":
                return replace(table, watermark=None)
            case "DROP KEY":
                return replace(table, primary_key=(), constraint=None)
            case "DROP COLUMNS":
                for name in node.arguments:
                    self._known(name, names, node.at)
                    if name in table.primary_key or (table.watermark and table.watermark[0] == name):
                        message = f"column '{name}' is used by the primary key or the watermark"
                        raise CatalogError(message, at=node.at)
                return replace(table, columns=tuple(c for c in table.columns if c.name not in node.arguments))
        for part in node.arguments:
            table = self._changed(node, table, part, text)
        return table

    @staticmethod
    def _known(name: str, names: list[str], at: int | None) -> None:
        if name not in names:
            message = f"there is no column '{name}'"
            raise CatalogError(message, at=at, hint=nearest(name, names))

    def _changed(self, node: s.Alter, table: TableDefinition, part: Any, text: str) -> TableDefinition:
        if isinstance(part, s.WatermarkDef):
            return self._with_watermark(table, part, text)
        first, second = part
        if not isinstance(first, s.ColumnDef):
            return replace(table, constraint=first, primary_key=second)
        names = [each.name for each in table.columns]
        made = self._column(first, text, names)
        if node.action == "ADD" and made.name in names:
            message = f"there is a column '{made.name}' already"
            raise CatalogError(message, at=first.at)
        if node.action == "MODIFY":
            self._known(made.name, names, first.at)
        columns = [each for each in table.columns if each.name != made.name]
        if second == "":
            columns.insert(0, made)
        elif second is not None:
            self._known(second, names, first.at)
            columns.insert([each.name for each in columns].index(second) + 1, made)
        elif node.action == "MODIFY":
            columns.insert(names.index(made.name), made)
        else:
            columns.append(made)
        changed = replace(table, columns=tuple(columns))
        return self._with_computed(changed, [first]) if first.expr is not None else changed

    # ------------------------------------------------------------------------------------------------ SHOW, DESCRIBE

    def _show(self, node: s.Show) -> Answer:
        c = self._catalogs
        match node.kind:
            case "CATALOGS":
                return self._listed("catalog name", sorted(c.all), node)
            case "CURRENT CATALOG":
                return table_of(["current catalog name"], [(c.current_catalog,)])
            case "CURRENT DATABASE":
                return table_of(["current database name"], [(c.current_database,)])
            case "DATABASES":
                name = node.name[0] if node.name else c.current_catalog
                return self._listed("database name", sorted(c.catalog(name, node.at).databases), node)
            case "TABLES" | "VIEWS":
                catalog, database = c.current_catalog, c.current_database
                if len(node.name) == 1:
                    database = node.name[0]
                elif node.name:
                    catalog, database = node.name[0], node.name[1]
                c.database(catalog, database, node.at)
                found = c.table_names(catalog, database)
                if node.kind == "VIEWS":
                    found = [n for n in found if not isinstance(c.table((catalog, database, n))[1], TableDefinition)]
                return self._listed(f"{node.kind[:-1].lower()} name", found, node)
            case "COLUMNS":
                answer = self._describe(s.Describe(node.at, node.name))
                kept = self._matching([row[0] for row in answer.rows], node)
                return replace(answer, rows=tuple(row for row in answer.rows if row[0] in kept))
            case "FUNCTIONS":
                return self._listed("function name", sorted({*self._builtin(), *c.function_names()}), node)
            case "USER FUNCTIONS":
                return self._listed("function name", sorted(set(c.function_names())), node)
            case "MODULES":
                return self._listed("module name", [name for name, used in c.modules.listed() if used], node)
            case "FULL MODULES":
                kinds = t.row_of(["module name", "used"], [t.STRING, t.BOOLEAN], null=False)
                return Answer(kinds, tuple(c.modules.listed()))
            case "PARTITIONS":
                return self._partitions(node)
            case "JARS":
                return table_of(["jars"], [])
            case "CREATE TABLE" | "CREATE VIEW":
                return self._show_create(node)
            case "CREATE CATALOG":
                catalog_found = c.catalog(node.name[0], node.at)
                comment = f" COMMENT {_string(catalog_found.comment)}" if catalog_found.comment else ""
                made = f"CREATE CATALOG {_quoted(catalog_found.name)}{comment}"
                return table_of(["result"], [(f"{made} WITH (\n  {_pairs(catalog_found.options)}\n)\n",)])
        message = f"SHOW {node.kind} is not supported"
        raise SqlNotSupported(message, at=node.at)

    @staticmethod
    def _builtin() -> list[str]:
        names = [each for each in registry.known_names() if re.fullmatch(r"[A-Z_0-9]+", each)]
        return sorted(each.lower() for each in (*names, *(n for n in AGGREGATES if n.isidentifier())))

    def _listed(self, column: str, names: list[str], node: s.Show) -> Answer:
        kept = self._matching(names, node)
        return table_of([column], [(name,) for name in names if name in kept])

    @staticmethod
    def _matching(names: list[str], node: s.Show) -> set[str]:
        if node.like is None:
            return set(names)
        pattern = like_pattern(node.like)
        if node.ignore_case:
            pattern = re.compile(pattern.pattern, pattern.flags | re.IGNORECASE)
        return {name for name in names if (pattern.fullmatch(name) is not None) != node.negated}

    def _describe(self, node: s.Describe) -> Answer:
        if node.kind == "CATALOG":
            found = self._catalogs.catalog(node.name[0], node.at)
            rows = [
                ("name", found.name),
                ("type", found.options.get("type", "generic_in_memory")),
                ("comment", found.comment or ""),
            ]
            if node.extended:
                rows += [(f"option:{k}", v) for k, v in found.options.items() if k != "type"]
            return table_of(["info name", "info value"], rows)
        if node.kind == "DATABASE":
            catalog, name = (self._catalogs.current_catalog, node.name[0]) if len(node.name) == 1 else node.name[:2]
            database = self._catalogs.database(catalog, name, node.at)
            rows = [("catalog", catalog), ("database", name), ("comment", database.comment or "")]
            if node.extended:
                rows += [(f"option:{k}", v) for k, v in database.options.items()]
            return table_of(["info name", "info value"], rows)
        if node.kind == "FUNCTION":
            return self._describe_function(node)
        _, table = self._catalogs.table(node.name, node.at)
        described = described_columns(table)
        comments = [each.comment for each in table.columns] if isinstance(table, TableDefinition) else []
        if not any(comments):
            return Answer(_DESCRIBED, tuple(described))
        schema = t.row_of([*_DESCRIBED.names, "comment"], [*_DESCRIBED.types, t.STRING], null=False)
        return Answer(schema, tuple((*row, comment) for row, comment in zip(described, comments, strict=True)))

    def _describe_function(self, node: s.Describe) -> Answer:
        user = self._catalogs.function(node.name)
        if user is not None:
            return table_of(
                ["info name", "info value"], [("is system function", "false"), ("kind", user.kind), ("name", user.name)]
            )
        found = registry.find(node.name[-1])
        if found is None:
            message = f"there is no function '{node.name[-1]}'"
            raise CatalogError(message, at=node.at, hint=registry.similar(node.name[-1]))
        rows = [("is system function", "true"), ("signature", registry.signature(found)), ("description", found.doc)]
        return table_of(["info name", "info value"], rows)

    def _show_create(self, node: s.Show) -> Answer:
        full, found = self._catalogs.table(node.name, node.at)
        if node.kind == "CREATE VIEW":
            if not isinstance(found, ViewDefinition):
                message = f"'{'.'.join(node.name)}' is not a view"
                raise CatalogError(message, at=node.at)
            quoted = ".".join(map(_quoted, full))
            columns = ",\n  ".join(map(_quoted, found.schema.names))
            word = "TEMPORARY VIEW" if full in self._catalogs.temporary else "VIEW"
            return table_of(["result"], [(f"CREATE {word} {quoted} (\n  {columns}\n)\nAS {found.text}\n",)])
        if not isinstance(found, TableDefinition):
            message = f"'{'.'.join(node.name)}' is not a table"
            raise CatalogError(message, at=node.at, hint="use SHOW CREATE VIEW")
        return table_of(["result"], [(create_text(full, found, temporary=full in self._catalogs.temporary),)])

    def _use(self, node: s.Use) -> Answer:
        if node.kind == "CATALOG":
            found = self._catalogs.catalog(node.name[0], node.at)
            self._catalogs.current_catalog, self._catalogs.current_database = found.name, found.default_database
        elif node.kind == "DATABASE":
            catalog, name = (self._catalogs.current_catalog, node.name[0]) if len(node.name) == 1 else node.name[:2]
            self._catalogs.database(catalog, name, node.at)
            self._catalogs.current_catalog, self._catalogs.current_database = catalog, name
        else:
            self._catalogs.modules.use(node.name, node.at)
        return OK

    def _module(self, node: s.Module) -> Answer:
        if node.action == "UNLOAD":
            self._catalogs.modules.unload(node.name, node.at)
            return OK
        self._catalogs.modules.check_new(node.name, node.at)
        self.load_module(node.name, installed(node.name, dict(node.options), node.at), node.at)
        return OK

    def load_module(self, name: str, functions: Mapping[str, Any], at: int | None = None) -> None:
        """Add a module of users' functions."""
        self._catalogs.modules.load(name, {key: self._wrap(key, each) for key, each in functions.items()}, at)

    def _partitions(self, node: s.Show) -> Answer:
        full, table = self._catalogs.table(node.name, node.at)
        if not isinstance(table, TableDefinition):
            message = f"'{'.'.join(node.name)}' is not a table"
            raise CatalogError(message, at=node.at)
        wanted: dict[str, str] = {}
        for key, value in node.partition:
            if not isinstance(value, s.Constant):
                message = f"the value of '{key}' must be a literal"
                raise SqlValidationError(message, at=node.at)
            wanted[key] = str(value.value)
        listed = partitions(".".join(full), table, wanted, node.at)
        return table_of(["partition name"], [(each,) for each in listed])


_DESCRIBED = t.row_of(
    ["name", "type", "null", "key", "extras", "watermark"],
    [t.STRING, t.STRING, t.BOOLEAN, t.STRING, t.STRING, t.STRING],
    null=False,
)


def described_columns(table: Any) -> list[tuple[Any, ...]]:
    """The rows of DESCRIBE."""
    if isinstance(table, TableDefinition):
        key = f"PRI({', '.join(table.primary_key)})" if table.primary_key else None
        rows: list[tuple[Any, ...]] = []
        for each, field in zip(table.columns, table.schema.fields, strict=True):
            extras = None
            if each.expr is not None:
                extras = f"AS {each.expr}"
            elif each.metadata_key is not None:
                extras = "METADATA" + (f" FROM '{each.metadata_key}'" if each.metadata_key != each.name else "")
                extras += " VIRTUAL" if each.virtual else ""
            mark = table.watermark[1] if table.watermark is not None and table.watermark[0] == each.name else None
            kind = field.data_type
            rows.append(
                (
                    each.name,
                    str(kind.nullable()),
                    kind.null,
                    key if each.name in table.primary_key else None,
                    extras,
                    mark,
                )
            )
        return rows
    schema: t.RowType = table.schema
    primary = getattr(table, "primary_key", ()) if isinstance(table, StreamTable) else ()
    key = f"PRI({', '.join(primary)})" if primary else None
    return [
        (f.name, str(f.data_type.nullable()), f.data_type.null, key if f.name in primary else None, None, None)
        for f in schema.fields
    ]


def create_text(full: tuple[str, ...], table: TableDefinition, *, temporary: bool) -> str:
    """A table as CREATE TABLE would make it."""
    lines: list[str] = []
    for each in table.columns:
        comment = f" COMMENT {_string(each.comment)}" if each.comment else ""
        if each.expr is not None:
            lines.append(f"{_quoted(each.name)} AS {each.expr}{comment}")
            continue
        extra = ""
        if each.metadata_key is not None:
            extra = " METADATA" + (f" FROM {_string(each.metadata_key)}" if each.metadata_key != each.name else "")
            extra += " VIRTUAL" if each.virtual else ""
        kind = each.type.not_null() if each.name in table.primary_key else each.type
        text = str(kind).replace("STRING", "VARCHAR(2147483647)").replace("BYTES", "VARBINARY(2147483647)")
        lines.append(f"{_quoted(each.name)} {text}{extra}{comment}")
    if table.watermark is not None:
        lines.append(f"WATERMARK FOR {_quoted(table.watermark[0])} AS {table.watermark[1]}")
    if table.primary_key:
        keys = ", ".join(map(_quoted, table.primary_key))
        name = table.constraint or f"PK_{'_'.join(table.primary_key)}"
        lines.append(f"CONSTRAINT {_quoted(name)} PRIMARY KEY ({keys}) NOT ENFORCED")
    body = ",\n  ".join(lines)
    quoted = ".".join(map(_quoted, full))
    made = f"CREATE {'TEMPORARY ' if temporary else ''}TABLE {quoted} (\n  {body}\n)"
    if table.comment:
        made += f" COMMENT {_string(table.comment)}"
    if table.partitions:
        made += f"\nPARTITIONED BY ({', '.join(map(_quoted, table.partitions))})"
    if table.options:
        made += f"\nWITH (\n  {_pairs(table.options)}\n)"
    return f"{made}\n"


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _string(text: str) -> str:
    return f"'{text.replace(chr(39), chr(39) * 2)}'"


def _pairs(options: Mapping[str, str]) -> str:
    return ",\n  ".join(f"{_string(key)} = {_string(value)}" for key, value in options.items())


def expression_text(node: s.Expr, text: str, names: Collection[str]) -> str:
    """The text of an expression in a statement, its columns in backticks."""
    start = _start(node)
    grammar = StatementGrammar(text)
    while grammar.token.kind != "end" and grammar.token.start < start:
        grammar.advance()
    first = grammar.mark()
    grammar.expression()
    last = grammar.mark()
    made: list[str] = []
    at = start
    for token in grammar.between(first, last):
        made.append(text[at : token.start])
        calls = token.kind == "word" and text[token.end :].lstrip().startswith("(")
        named = token.kind == "word" and token.text in names and not calls
        made.append(f"`{token.text}`" if named else text[token.start : token.end])
        at = token.end
    return "".join(made)


def _start(node: Any) -> int:
    """Where an expression begins: an operator's place is behind its first operand."""
    places: list[int] = [node.at]
    for value in vars(node).values():
        inside = value if isinstance(value, tuple) else (value,)
        places.extend(_start(each) for each in inside if isinstance(each, s.Expr))
    return min(places)
