"""The grammar of statements that define things: CREATE, ALTER, DROP.

Promises: what Flink SQL can define is parsed or refused by name.
Does not know: catalogs."""

from __future__ import annotations

from millstream.sql.syntax import tree as s
from millstream.sql.syntax.queries import QueryGrammar


class DefinitionGrammar(QueryGrammar):
    """Definitions."""

    def _refuse(self, at: int, what: str, reason: str) -> s.Statement:
        while not self.is_op(";") and self.token.kind != "end":
            self.advance()
        return s.Unsupported(at, what, reason)

    # --------------------------------------------------------------------------------------------------- CREATE

    def _create(self) -> s.Statement:
        at = self.advance().start
        replace = self.take("OR", "REPLACE")
        temporary = self.take("TEMPORARY")
        system = temporary and self.take("SYSTEM")
        kind = self.take_any("TABLE", "VIEW", "DATABASE", "CATALOG", "FUNCTION", "MODEL", "MATERIALIZED", "CONNECTION")
        match kind:
            case "TABLE":
                return self._create_table(at, temporary, replace)
            case "VIEW":
                return self._create_view(at, temporary, replace)
            case "DATABASE" | "CATALOG":
                missing = self._if_not_exists()
                name = self.path()
                comment = self.string() if self.take("COMMENT") else None
                return s.CreateNamespace(at, kind, name, self._options(), comment, missing)
            case "FUNCTION":
                return self._create_function(at, temporary, system)
            case "MODEL":
                return self._refuse(at, "CREATE MODEL", "models are not supported")
            case "MATERIALIZED" | "CONNECTION":
                return self._refuse(at, f"CREATE {kind}", refusal(kind))
        self.fail("TABLE, VIEW, DATABASE, CATALOG or FUNCTION")

    def _if_not_exists(self) -> bool:
        return self.take("IF", "NOT", "EXISTS")

    def _options(self) -> tuple[tuple[str, str], ...]:
        return self._pairs() if self.take("WITH") else ()

    def _pairs(self) -> tuple[tuple[str, str], ...]:
        self.expect_op("(")
        if self.take_op(")"):
            return ()
        found = self.many(self._pair)
        self.expect_op(")")
        return found

    def _pair(self) -> tuple[str, str]:
        key = self.string()
        self.expect_op("=")
        return key, self.string()

    def _replace(self) -> s.Statement:
        """REPLACE TABLE ... AS: the table must be there."""
        at = self.advance().start
        self.expect("TABLE")
        made = self._create_table(at, temporary=False, replace=True, must_exist=True)
        if made.query is None:
            self.fail("AS SELECT", hint="REPLACE TABLE needs a query; ALTER TABLE changes a table")
        return made

    def _create_table(self, at: int, temporary: bool, replace: bool, *, must_exist: bool = False) -> s.CreateTable:
        missing = self._if_not_exists()
        name = self.path()
        columns: list[s.ColumnDef] = []
        watermark: s.WatermarkDef | None = None
        key: tuple[str, ...] = ()
        constraint: str | None = None
        if self.is_op("("):
            self.expect_op("(")
            while not self.is_op(")"):
                if self.is_word("WATERMARK", "FOR"):
                    if watermark is not None:
                        self.fail("no second watermark")
                    watermark = self._watermark()
                elif self.is_word("PRIMARY", "KEY") or self.is_word("CONSTRAINT"):
                    self._one_key(key)
                    constraint, key = self._primary_key()
                else:
                    column = self._column()
                    columns.append(column)
                    if column.primary_key:
                        self._one_key(key, column.at)
                        key = (column.name,)
                if not self.take_op(","):
                    break
                if self.is_op(")"):
                    self.fail("a column", hint="is there a comma too many?")
            self.expect_op(")")
        comment = self.string() if self.take("COMMENT") else None
        distribution = self._distribution() if self.is_word("DISTRIBUTED") else None
        partitions = self.wrapped(self.name) if self.take("PARTITIONED", "BY") else ()
        options = self._options()
        like = self._like() if self.is_word("LIKE") else None
        query = self.query() if self.take("AS") else None
        return s.CreateTable(
            at, name, tuple(columns), watermark, key, False, partitions, options, comment, temporary, missing, replace,
            like, query, constraint, distribution, must_exist,
        )  # fmt: skip

    def _one_key(self, key: tuple[str, ...], at: int | None = None) -> None:
        if key:
            self.fail("no second primary key", at=at, hint="one primary key can have several columns")

    def _distribution(self) -> s.DistributionDef:
        """DISTRIBUTED or DISTRIBUTION, and how."""
        at = self.advance().start
        kind: str | None = None
        columns: tuple[str, ...] = ()
        buckets: int | None = None
        by = self.take("BY")
        if by:
            kind = self.take_any("HASH", "RANGE")
            columns = self.wrapped(self.name)
        if self.take("INTO"):
            buckets = self.integer()
            self.expect("BUCKETS")
        elif not by:
            self.fail("BY or INTO")
        return s.DistributionDef(at, kind, columns, buckets)

    def _column(self) -> s.ColumnDef:
        at, name = self.at, self.name(any_word=True)
        if self.take("AS"):
            expr = self.expression()
            return s.ColumnDef(at, name, expr=expr, comment=self.string() if self.take("COMMENT") else None)
        if self.is_op(",", ")"):  # CREATE TABLE t (a, b) AS SELECT: names alone
            return s.ColumnDef(at, name)
        kind = self.data_type()
        metadata = virtual = False
        metadata_key = None
        primary = False
        while True:
            if self.take("METADATA"):
                metadata = True
                metadata_key = self.string() if self.take("FROM") else None
                virtual = self.take("VIRTUAL")
            elif self.take("PRIMARY", "KEY"):
                primary = True
                self._not_enforced()
            elif self.take("CONSTRAINT"):
                self.name()
            else:
                break
        comment = self.string() if self.take("COMMENT") else None
        return s.ColumnDef(at, name, kind, None, metadata, metadata_key, virtual, comment, primary)

    def _not_enforced(self) -> None:
        if self.take("ENFORCED") or not self.take("NOT", "ENFORCED"):
            self.fail("NOT ENFORCED", hint="a primary key is a promise of the data: write PRIMARY KEY ... NOT ENFORCED")

    def _primary_key(self) -> tuple[str | None, tuple[str, ...]]:
        constraint = self.name() if self.take("CONSTRAINT") else None
        self.expect("PRIMARY", "KEY")
        key = self.wrapped(self.name)
        self._not_enforced()
        return constraint, key

    def _watermark(self) -> s.WatermarkDef:
        at = self.at
        self.expect("WATERMARK", "FOR")
        column = self.path()
        self.expect("AS")
        return s.WatermarkDef(at, column, self.expression())

    def _like(self) -> s.LikeClause:
        at = self.at
        self.expect("LIKE")
        table = self.path()
        options: list[tuple[str, str]] = []
        if self.take_op("("):
            while not self.is_op(")"):
                how = self.take_any("INCLUDING", "EXCLUDING", "OVERWRITING") or self.fail("INCLUDING or EXCLUDING")
                options.append((how, self.name(any_word=True).upper()))
            self.expect_op(")")
        return s.LikeClause(at, table, tuple(options))

    def _create_view(self, at: int, temporary: bool, replace: bool) -> s.Statement:
        missing = self._if_not_exists()
        name = self.path()
        columns = self.wrapped(self.name) if self.is_op("(") else ()
        comment = self.string() if self.take("COMMENT") else None
        self.expect("AS")
        start = self.at
        query = self.query()
        text = self.text[start : self.ahead(0).start].rstrip().rstrip(";")
        return s.CreateView(at, name, query, text, columns, comment, temporary, missing, replace)

    def _create_function(self, at: int, temporary: bool, system: bool) -> s.Statement:
        missing = self._if_not_exists()
        name = self.path()
        self.expect("AS")
        target = self.string()
        language = self.name(any_word=True).upper() if self.take("LANGUAGE") else "JAVA"
        if self.take("USING"):
            while not self.is_op(";") and self.token.kind != "end":
                self.advance()
        return s.CreateFunction(at, name, target, language, temporary, system, missing)

    # --------------------------------------------------------------------------------------------- DROP and ALTER

    def _drop(self) -> s.Statement:
        at = self.advance().start
        temporary = self.take("TEMPORARY")
        system = temporary and self.take("SYSTEM")
        kind = self.take_any("TABLE", "VIEW", "DATABASE", "CATALOG", "FUNCTION", "MODEL", "MATERIALIZED", "CONNECTION")
        if kind is None:
            self.fail("TABLE, VIEW, DATABASE, CATALOG or FUNCTION")
        if kind in ("MODEL", "MATERIALIZED", "CONNECTION"):
            return self._refuse(at, f"DROP {kind}", refusal(kind))
        exists = self.take("IF", "EXISTS")
        name = self.path()
        cascade = self.take_any("CASCADE", "RESTRICT") == "CASCADE"
        return s.Drop(at, kind, name, exists, temporary, system, cascade)

    def _alter(self) -> s.Statement:
        at = self.advance().start
        temporary = self.take("TEMPORARY")
        if temporary:
            self.take("SYSTEM")
        kind = self.take_any("TABLE", "VIEW", "DATABASE", "CATALOG", "FUNCTION", "MODEL", "MATERIALIZED")
        if kind is None:
            self.fail("TABLE, VIEW, DATABASE, CATALOG or FUNCTION")
        if kind in ("MODEL", "MATERIALIZED"):
            return self._refuse(at, f"ALTER {kind}", refusal(kind))
        exists = self.take("IF", "EXISTS")
        name = self.path()
        if kind == "FUNCTION":
            self.expect("AS")
            target = self.string()
            language = self.name(any_word=True).upper() if self.take("LANGUAGE") else "JAVA"
            return s.Alter(at, kind, name, "AS", (target, language), exists, temporary)
        if self.take("RENAME", "TO"):
            return s.Alter(at, kind, name, "RENAME", (self.path(),), exists)
        if self.take("SET"):
            return s.Alter(at, kind, name, "SET", (self._pairs(),), exists)
        if self.take("RESET"):
            return s.Alter(at, kind, name, "RESET", (self.wrapped(self.string),), exists)
        if self.take("COMMENT"):
            return s.Alter(at, kind, name, "COMMENT", (self.string(),), exists)
        if kind == "VIEW" and self.take("AS"):
            start = self.at
            query = self.query()
            return s.Alter(at, kind, name, "AS", (query, self.text[start : self.at].rstrip()), exists)
        if kind == "TABLE":
            return self._alter_table(at, name, exists)
        self.fail("RENAME TO, SET, RESET or AS")

    def _alter_table(self, at: int, name: tuple[str, ...], exists: bool) -> s.Statement:
        if self.take("RENAME"):
            old = self.name()
            self.expect("TO")
            return s.Alter(at, "TABLE", name, "RENAME COLUMN", (old, self.name()), exists)
        word = self.take_any("ADD", "MODIFY", "DROP")
        if word is None:
            self.fail("ADD, MODIFY, DROP, RENAME, SET or RESET")
        if word != "MODIFY" and (
            self.is_word("PARTITION") or self.is_word("IF", "NOT") or self.is_word("IF", "EXISTS")
        ):
            return self._alter_partitions(at, name, exists, word)
        following = self.ahead()
        if word != "DROP" and self.is_word("DISTRIBUTION") and following.key in ("BY", "INTO"):
            return s.Alter(at, "TABLE", name, f"{word} DISTRIBUTION", (self._distribution(),), exists)
        if word == "DROP" and self.is_word("DISTRIBUTION") and (following.kind == "end" or following.text == ";"):
            self.advance()
            return s.Alter(at, "TABLE", name, "DROP DISTRIBUTION", (), exists)
        if word == "DROP":
            if self.take("WATERMARK"):
                return s.Alter(at, "TABLE", name, "DROP WATERMARK", (), exists)
            if self.take("PRIMARY", "KEY"):
                return s.Alter(at, "TABLE", name, "DROP KEY", (), exists)
            if self.take("CONSTRAINT"):
                return s.Alter(at, "TABLE", name, "DROP KEY", (self.name(),), exists)
            self.take("COLUMN")
            columns = self.wrapped(self.name) if self.is_op("(") else (self.name(),)
            return s.Alter(at, "TABLE", name, "DROP COLUMNS", columns, exists)
        self.take("COLUMN")
        parts = self.wrapped(self._alteration) if self.is_op("(") else (self._alteration(),)
        return s.Alter(at, "TABLE", name, word, parts, exists)

    def _alter_partitions(self, at: int, name: tuple[str, ...], exists: bool, word: str) -> s.Statement:
        given = self._if_not_exists() if word == "ADD" else self.take("IF", "EXISTS")
        parts: list[s.PartitionDef] = []
        while self.is_word("PARTITION") or not parts:
            place = self.at
            self.expect("PARTITION")
            spec = self.wrapped(self._partition_value)
            parts.append(s.PartitionDef(place, spec, self._options() if word == "ADD" else ()))
            if word == "DROP" and not self.take_op(","):
                break
        return s.Alter(at, "TABLE", name, f"{word} PARTITIONS", (given, tuple(parts)), exists)

    def _partition_value(self) -> tuple[str, s.Expr | None]:
        name = self.name()
        return name, self.expression() if self.take_op("=") else None

    def _alteration(self) -> object:
        if self.is_word("WATERMARK", "FOR"):
            return self._watermark()
        if self.is_word("PRIMARY", "KEY") or self.is_word("CONSTRAINT"):
            return self._primary_key()
        column = self._column()
        position: str | None = None
        if self.take("FIRST"):
            position = ""
        elif self.take("AFTER"):
            position = self.name()
        return column, position


def refusal(kind: str) -> str:
    """Why statements about such things are refused."""
    named = {
        "MODEL": "models", "MATERIALIZED": "materialized tables", "CONNECTION": "connections",
        "PROCEDURE": "procedures",
    }  # fmt: skip
    return f"{named[kind]} are not supported"
