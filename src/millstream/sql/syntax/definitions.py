"""Grammar of CREATE, REPLACE and DROP.

Promises: every object that Flink SQL can define is parsed, or refused with its name.
Does not know: catalogs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from millstream.sql.syntax import tree as s
from millstream.sql.syntax.cursor import Cursor
from millstream.sql.syntax.queries import QueryParser
from millstream.sql.syntax.type_names import TypeParser

UNSUPPORTED_OBJECTS = {
    "CONNECTION": "connections are not supported",
}


def parse_unsupported(cursor: Cursor, at: int, what: str, reason: str) -> s.Unsupported:
    """Skip a statement that Flink has and this project does not support."""
    cursor.skip_statement()
    return s.Unsupported(at, what, reason)


class _Create(NamedTuple):
    """The clauses between CREATE and the type of the object."""

    at: int
    replace: bool = False
    alter: bool = False
    temporary: bool = False
    system: bool = False


class DefinitionParser:
    """Parses CREATE, REPLACE and DROP, and the parts that ALTER has in common with them."""

    __slots__ = ("_cursor", "_queries", "_types")

    def __init__(self, cursor: Cursor, types: TypeParser, queries: QueryParser) -> None:
        self._cursor = cursor
        self._types = types
        self._queries = queries

    def parse_create(self) -> s.Statement:
        """CREATE [OR REPLACE | OR ALTER] [TEMPORARY [SYSTEM]] type ..."""
        cursor = self._cursor
        at = cursor.advance().start
        or_replace = cursor.accept("OR", "REPLACE")
        alter = cursor.accept("OR", "ALTER")
        temporary = cursor.accept("TEMPORARY")
        system = temporary and cursor.accept("SYSTEM")
        object_type = cursor.token.key
        if object_type in UNSUPPORTED_OBJECTS:
            return parse_unsupported(cursor, at, f"CREATE {object_type}", UNSUPPORTED_OBJECTS[object_type])
        if alter and object_type != "MATERIALIZED":
            cursor.reject("MATERIALIZED TABLE")
        parse = _CREATE_PARSERS.get(object_type)
        if parse is None:
            cursor.reject("TABLE, MATERIALIZED TABLE, VIEW, DATABASE, CATALOG, FUNCTION or MODEL")
        cursor.advance()
        return parse(self, _Create(at, or_replace, alter, temporary, system))

    def parse_replace(self) -> s.Statement:
        """REPLACE TABLE ... AS query; the table must exist."""
        at = self._cursor.advance().start
        self._cursor.expect("TABLE")
        table = self._parse_create_table(_Create(at, replace=True), must_exist=True)
        if table.query is None:
            self._cursor.reject("AS SELECT", hint="REPLACE TABLE needs a query; ALTER TABLE changes a table")
        return table

    def parse_drop(self) -> s.Statement:
        """DROP [TEMPORARY [SYSTEM]] type [IF EXISTS] name [CASCADE | RESTRICT]."""
        cursor = self._cursor
        at = cursor.advance().start
        temporary = cursor.accept("TEMPORARY")
        system = temporary and cursor.accept("SYSTEM")
        object_type = cursor.token.key
        if object_type in UNSUPPORTED_OBJECTS:
            return parse_unsupported(cursor, at, f"DROP {object_type}", UNSUPPORTED_OBJECTS[object_type])
        object_type = self.parse_object_type()
        if_exists = cursor.accept("IF", "EXISTS")
        name = cursor.parse_path()
        cascade = cursor.accept_any("CASCADE", "RESTRICT") == "CASCADE"
        return s.Drop(at, object_type, name, if_exists, temporary, system, cascade)

    def parse_object_type(self) -> str:
        """Parse the type of an object of DROP and ALTER."""
        cursor = self._cursor
        if cursor.accept("MATERIALIZED"):
            cursor.expect("TABLE")
            return "MATERIALIZED TABLE"
        return cursor.expect_any("TABLE", "VIEW", "DATABASE", "CATALOG", "FUNCTION", "MODEL")

    # ------------------------------------------------------------------------------------------ databases, functions

    def _parse_create_database(self, create: _Create) -> s.Statement:
        return self._parse_create_namespace(create, "DATABASE")

    def _parse_create_catalog(self, create: _Create) -> s.Statement:
        return self._parse_create_namespace(create, "CATALOG")

    def _parse_create_namespace(self, create: _Create, object_type: str) -> s.Statement:
        if_not_exists = self.parse_if_not_exists()
        name = self._cursor.parse_path()
        comment = self._parse_comment()
        return s.CreateNamespace(create.at, object_type, name, self.parse_options(), comment, if_not_exists)

    def _parse_create_function(self, create: _Create) -> s.Statement:
        if_not_exists = self.parse_if_not_exists()
        name = self._cursor.parse_path()
        target, language = self.parse_function_target()
        if self._cursor.accept("USING"):  # JAR files: Python functions do not need them
            self._cursor.skip_statement()
        return s.CreateFunction(create.at, name, target, language, create.temporary, create.system, if_not_exists)

    def parse_function_target(self) -> tuple[str, str]:
        """AS 'module.name' [LANGUAGE name]; the language is JAVA unless it is given."""
        cursor = self._cursor
        cursor.expect("AS")
        target = cursor.parse_string()
        language = cursor.parse_name(any_word=True).upper() if cursor.accept("LANGUAGE") else "JAVA"
        return target, language

    def _parse_create_model(self, create: _Create) -> s.Statement:
        cursor = self._cursor
        if_not_exists = self.parse_if_not_exists()
        name = cursor.parse_path()
        has_input = cursor.accept("INPUT")
        inputs = cursor.parse_parenthesized(self.parse_column) if has_input else ()
        if has_input:
            cursor.expect("OUTPUT")
        outputs = cursor.parse_parenthesized(self.parse_column) if has_input else ()
        comment = self._parse_comment()
        options = self.parse_options()
        return s.CreateModel(create.at, name, inputs, outputs, options, comment, create.temporary, if_not_exists)

    # ---------------------------------------------------------------------------------------------------------- views

    def _parse_create_view(self, create: _Create) -> s.Statement:
        cursor = self._cursor
        if_not_exists = self.parse_if_not_exists()
        name = cursor.parse_path()
        columns = cursor.parse_parenthesized(cursor.parse_name) if cursor.is_next("(") else ()
        comment = self._parse_comment()
        cursor.expect("AS")
        query, text = self.parse_view_query()
        return s.CreateView(
            create.at, name, query, text, columns, comment, create.temporary, if_not_exists, create.replace
        )

    def parse_view_query(self) -> tuple[s.Query, str]:
        """Parse a query and return it with its text."""
        start = self._cursor.at
        query = self._queries.parse_query()
        return query, self._cursor.text[start : self._cursor.at].rstrip()

    # --------------------------------------------------------------------------------------------------------- tables

    def _parse_create_table(self, create: _Create, *, must_exist: bool = False) -> s.CreateTable:
        table = self._parse_table_clauses(create, must_exist=must_exist)
        like = self._parse_like() if self._cursor.is_next("LIKE") else None
        query = self._queries.parse_query() if self._cursor.accept("AS") else None
        return replace(table, like=like, query=query)

    def _parse_create_materialized(self, create: _Create) -> s.Statement:
        """TABLE name clauses [START_MODE = ...] [FRESHNESS = ...] [REFRESH_MODE = FULL | CONTINUOUS] AS query."""
        cursor = self._cursor
        cursor.expect("TABLE")
        table = self._parse_table_clauses(create)
        if cursor.accept("START_MODE"):
            cursor.expect("=")
            if not cursor.accept("FROM_BEGINNING"):
                hint = "a start position can be an option in the query: FROM t /*+ OPTIONS(...) */"
                cursor.reject("FROM_BEGINNING, the only start mode that is supported", hint=hint)
        freshness: s.IntervalLiteral | None = None
        if cursor.accept("FRESHNESS"):
            cursor.expect("=")
            at = cursor.at
            interval = self._queries.expressions.parse_expression()
            if not isinstance(interval, s.IntervalLiteral):
                cursor.fail("FRESHNESS must be an interval", hint="write FRESHNESS = INTERVAL '10' MINUTE", at=at)
            freshness = interval
        mode: str | None = None
        if cursor.accept("REFRESH_MODE"):
            cursor.expect("=")
            mode = cursor.expect_any("CONTINUOUS", "FULL")
        cursor.expect("AS")
        query, text = self.parse_view_query()
        return s.CreateMaterializedTable(create.at, replace(table, query=query), text, freshness, mode, create.alter)

    def _parse_table_clauses(self, create: _Create, *, must_exist: bool = False) -> s.CreateTable:
        """Parse name, columns, comment, distribution, partitions and options."""
        cursor = self._cursor
        if_not_exists = self.parse_if_not_exists()
        name = cursor.parse_path()
        schema = self._parse_schema() if cursor.is_next("(") else _Schema()
        comment = self._parse_comment()
        distribution = self.parse_distribution() if cursor.is_next("DISTRIBUTED") else None
        partitions = cursor.parse_parenthesized(cursor.parse_name) if cursor.accept("PARTITIONED", "BY") else ()
        options = self.parse_options()
        return s.CreateTable(
            create.at,
            name,
            schema.columns,
            schema.watermark,
            schema.primary_key,
            partitions=partitions,
            options=options,
            comment=comment,
            temporary=create.temporary,
            if_not_exists=if_not_exists,
            or_replace=create.replace,
            constraint=schema.constraint,
            distribution=distribution,
            must_exist=must_exist,
        )

    def _parse_schema(self) -> _Schema:
        """( column, ..., WATERMARK FOR ..., PRIMARY KEY ... ), in any order."""
        cursor = self._cursor
        columns: list[s.ColumnDef] = []
        watermark: s.WatermarkDef | None = None
        primary_key: tuple[str, ...] = ()
        constraint: str | None = None
        cursor.expect("(")
        while not cursor.is_next(")"):
            at = cursor.at
            new_key: tuple[str, ...] = ()
            if cursor.is_next("WATERMARK", "FOR"):
                if watermark is not None:
                    cursor.fail("a table can have only one watermark")
                watermark = self.parse_watermark()
            elif cursor.is_next("PRIMARY", "KEY") or cursor.is_next("CONSTRAINT"):
                primary_key_def = self.parse_primary_key()
                constraint, new_key = primary_key_def.constraint, primary_key_def.columns
            else:
                column = self.parse_column()
                columns.append(column)
                new_key = (column.name,) if column.primary_key else ()
            if primary_key and new_key:
                hint = "one primary key can have several columns: PRIMARY KEY (a, b) NOT ENFORCED"
                cursor.fail("a table can have only one primary key", hint=hint, at=at)
            primary_key = primary_key or new_key
            if not cursor.accept(","):
                break
            if cursor.is_next(")"):
                cursor.reject("a column", hint="remove the comma before the closing parenthesis")
        cursor.expect(")")
        return _Schema(tuple(columns), watermark, primary_key, constraint)

    def parse_column(self) -> s.ColumnDef:
        """name type [METADATA ...] [PRIMARY KEY ...] [COMMENT ...], name AS expression, or a name alone."""
        cursor = self._cursor
        at, name = cursor.at, cursor.parse_name(any_word=True)
        if cursor.accept("AS"):
            expr = self._queries.expressions.parse_expression()
            return s.ColumnDef(at, name, expr=expr, comment=self._parse_comment())
        if cursor.is_any(",", ")"):  # CREATE TABLE t (a, b) AS SELECT has names without types
            return s.ColumnDef(at, name)
        data_type = self._types.parse_type()
        metadata = virtual = primary_key = False
        metadata_key: str | None = None
        while True:
            if cursor.accept("METADATA"):
                metadata = True
                metadata_key = cursor.parse_string() if cursor.accept("FROM") else None
                virtual = cursor.accept("VIRTUAL")
            elif cursor.accept("PRIMARY", "KEY"):
                primary_key = True
                self._parse_not_enforced()
            elif cursor.accept("CONSTRAINT"):
                cursor.parse_name()
            else:
                break
        comment = self._parse_comment()
        return s.ColumnDef(at, name, data_type, None, metadata, metadata_key, virtual, comment, primary_key)

    def parse_watermark(self) -> s.WatermarkDef:
        """WATERMARK FOR column AS expression."""
        cursor = self._cursor
        at = cursor.at
        cursor.expect("WATERMARK", "FOR")
        column = cursor.parse_path()
        cursor.expect("AS")
        return s.WatermarkDef(at, column, self._queries.expressions.parse_expression())

    def parse_primary_key(self) -> s.PrimaryKeyDef:
        """[CONSTRAINT name] PRIMARY KEY (column, ...) NOT ENFORCED."""
        cursor = self._cursor
        constraint = cursor.parse_name() if cursor.accept("CONSTRAINT") else None
        cursor.expect("PRIMARY", "KEY")
        columns = cursor.parse_parenthesized(cursor.parse_name)
        self._parse_not_enforced()
        return s.PrimaryKeyDef(constraint, columns)

    def _parse_not_enforced(self) -> None:
        if not self._cursor.accept("NOT", "ENFORCED"):
            hint = "primary keys are not checked: write PRIMARY KEY ... NOT ENFORCED"
            self._cursor.reject("NOT ENFORCED", hint=hint)

    def parse_distribution(self) -> s.DistributionDef:
        """(DISTRIBUTED | DISTRIBUTION) [BY [HASH | RANGE] (column, ...)] [INTO n BUCKETS]."""
        cursor = self._cursor
        at = cursor.advance().start
        kind: str | None = None
        columns: tuple[str, ...] = ()
        buckets: int | None = None
        has_columns = cursor.accept("BY")
        if has_columns:
            kind = cursor.accept_any("HASH", "RANGE")
            columns = cursor.parse_parenthesized(cursor.parse_name)
        if cursor.accept("INTO"):
            buckets = cursor.parse_integer()
            cursor.expect("BUCKETS")
        elif not has_columns:
            cursor.reject("BY or INTO")
        return s.DistributionDef(at, kind, columns, buckets)

    def _parse_like(self) -> s.LikeClause:
        """LIKE table [( (INCLUDING | EXCLUDING | OVERWRITING) part ... )]."""
        cursor = self._cursor
        at = cursor.advance().start
        table = cursor.parse_path()
        options: list[tuple[str, str]] = []
        if cursor.accept("("):
            while not cursor.accept(")"):
                strategy = cursor.expect_any("INCLUDING", "EXCLUDING", "OVERWRITING")
                options.append((strategy, cursor.parse_name(any_word=True).upper()))
        return s.LikeClause(at, table, tuple(options))

    # -------------------------------------------------------------------------------------------- shared by statements

    def parse_if_not_exists(self) -> bool:
        """[IF NOT EXISTS]."""
        return self._cursor.accept("IF", "NOT", "EXISTS")

    def _parse_comment(self) -> str | None:
        return self._cursor.parse_string() if self._cursor.accept("COMMENT") else None

    def parse_options(self) -> tuple[tuple[str, str], ...]:
        """[WITH ('key' = 'value', ...)]."""
        return self.parse_option_list() if self._cursor.accept("WITH") else ()

    def parse_option_list(self) -> tuple[tuple[str, str], ...]:
        """('key' = 'value', ...)."""
        if self._cursor.accept("(", ")"):
            return ()
        return self._cursor.parse_parenthesized(self._parse_option)

    def _parse_option(self) -> tuple[str, str]:
        key = self._cursor.parse_string()
        self._cursor.expect("=")
        return key, self._cursor.parse_string()

    def parse_partition(self) -> tuple[tuple[str, s.Expr | None], ...]:
        """PARTITION (column [= value], ...)."""
        self._cursor.expect("PARTITION")
        return self._cursor.parse_parenthesized(self._parse_partition_value)

    def _parse_partition_value(self) -> tuple[str, s.Expr | None]:
        name = self._cursor.parse_name()
        return name, self._queries.expressions.parse_expression() if self._cursor.accept("=") else None


class _Schema(NamedTuple):
    """The part of CREATE TABLE between the parentheses."""

    columns: tuple[s.ColumnDef, ...] = ()
    watermark: s.WatermarkDef | None = None
    primary_key: tuple[str, ...] = ()
    constraint: str | None = None


_CREATE_PARSERS: dict[str, Callable[[DefinitionParser, _Create], s.Statement]] = {
    "TABLE": DefinitionParser._parse_create_table,
    "MATERIALIZED": DefinitionParser._parse_create_materialized,
    "VIEW": DefinitionParser._parse_create_view,
    "DATABASE": DefinitionParser._parse_create_database,
    "CATALOG": DefinitionParser._parse_create_catalog,
    "FUNCTION": DefinitionParser._parse_create_function,
    "MODEL": DefinitionParser._parse_create_model,
}
