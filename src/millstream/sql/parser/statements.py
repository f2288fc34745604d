"""The grammar of statements.

Promises: every statement of Flink SQL is parsed or refused by name; nothing is taken for something else.
Does not know: catalogs."""

from __future__ import annotations

from collections.abc import Callable

from millstream.sql import syntax as s
from millstream.sql.errors import nearest
from millstream.sql.parser.queries import QueryGrammar

_STATEMENTS = (
    *("SELECT", "WITH", "VALUES", "CREATE", "ALTER", "DROP", "INSERT", "SHOW", "DESCRIBE", "DESC", "USE", "EXPLAIN"),
    *("EXECUTE", "COMPILE", "SET", "RESET", "LOAD", "UNLOAD", "BEGIN", "TRUNCATE", "ANALYZE", "DELETE", "UPDATE"),
    *("ADD", "REMOVE", "CALL", "STOP", "TABLE"),
)
_SHOWN = (
    *("CATALOGS", "DATABASES", "TABLES", "VIEWS", "COLUMNS", "PARTITIONS", "FUNCTIONS", "MODULES", "JARS", "JOBS"),
    *("PROCEDURES", "CURRENT", "CREATE", "USER", "FULL", "MODELS", "MATERIALIZED"),
)


class StatementGrammar(QueryGrammar):
    """Statements."""

    def statement(self) -> s.Statement:
        """One statement, up to its semicolon or the end."""
        token = self.token
        if token.kind == "op" and token.text == "(":
            return s.SelectStatement(token.start, self.query())
        word = token.key
        if token.kind != "word" or word not in _STATEMENTS:
            self.fail("a statement", hint=nearest(token.text, _STATEMENTS) if token.kind == "word" else None)
        if word in ("SELECT", "WITH", "VALUES", "TABLE"):
            return s.SelectStatement(token.start, self.query())
        parse: Callable[[], s.Statement] = getattr(self, f"_{word.lower()}")
        return parse()

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
                return self._refuse(at, f"CREATE {kind}", _refusal(kind))
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

    def _create_table(self, at: int, temporary: bool, replace: bool) -> s.Statement:
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
                    constraint, key = self._primary_key()
                else:
                    column = self._column()
                    columns.append(column)
                    if column.primary_key:
                        key = (column.name,)
                if not self.take_op(","):
                    break
            self.expect_op(")")
        comment = self.string() if self.take("COMMENT") else None
        if self.take("DISTRIBUTED"):
            self.take("BY")
            while not self.is_word("WITH") and not self.is_op(";") and self.token.kind != "end":
                self.advance()
        partitions = self.wrapped(self.name) if self.take("PARTITIONED", "BY") else ()
        options = self._options()
        like = self._like() if self.is_word("LIKE") else None
        query = self.query() if self.take("AS") else None
        return s.CreateTable(
            at, name, tuple(columns), watermark, key, False, partitions, options, comment, temporary, missing, replace,
            like, query, constraint,
        )  # fmt: skip

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
            return self._refuse(at, f"DROP {kind}", _refusal(kind))
        exists = self.take("IF", "EXISTS")
        name = self.path()
        cascade = self.take_any("CASCADE", "RESTRICT") == "CASCADE"
        return s.Drop(at, kind, name, exists, temporary, system, cascade)

    def _alter(self) -> s.Statement:
        at = self.advance().start
        self.take("TEMPORARY")
        kind = self.take_any("TABLE", "VIEW", "DATABASE", "CATALOG", "FUNCTION", "MODEL", "MATERIALIZED")
        if kind is None:
            self.fail("TABLE, VIEW, DATABASE, CATALOG or FUNCTION")
        if kind in ("MODEL", "MATERIALIZED"):
            return self._refuse(at, f"ALTER {kind}", _refusal(kind))
        exists = self.take("IF", "EXISTS")
        name = self.path()
        if kind == "FUNCTION":
            self.expect("AS")
            target = self.string()
            language = self.name(any_word=True).upper() if self.take("LANGUAGE") else "JAVA"
            return s.Alter(at, kind, name, "AS", (target, language), exists)
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
            return self._refuse(at, f"ALTER TABLE {word} PARTITION", "partitions are what the table's connector finds")
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

    # ------------------------------------------------------------------------------------------ SHOW and its kin

    def _show(self) -> s.Statement:
        at = self.advance().start
        kind = self.take_any(*_SHOWN)
        if kind is None:
            hint = nearest(self.token.text, _SHOWN) if self.token.kind == "word" else None
            self.fail("what to show", hint=hint)
        if kind in ("MODELS", "MATERIALIZED", "PROCEDURES"):
            return self._refuse(at, f"SHOW {kind}", "there are none here")
        if kind == "CREATE" and self.is_any("MODEL", "MATERIALIZED"):
            return self._refuse(at, f"SHOW CREATE {self.token.key}", "there are none here")
        if kind == "PARTITIONS":
            path = self.path()
            values = self.wrapped(self._partition_value) if self.take("PARTITION") else ()
            return s.Show(at, kind, path, partition=values)
        if kind in ("CURRENT", "USER", "FULL", "CREATE"):
            kind = f"{kind} {self.advance().key}"
        name: tuple[str, ...] = ()
        if kind.startswith("CREATE ") or self.take_any("FROM", "IN"):
            name = self.path()
        negated = self.take("NOT")
        like = self.take_any("LIKE", "ILIKE")
        pattern = self.string() if like else None
        return s.Show(at, kind, name, pattern, negated, like == "ILIKE")

    def _describe(self) -> s.Statement:
        at = self.advance().start
        kind = "TABLE"
        if self.is_any("DATABASE", "CATALOG", "FUNCTION", "MODEL", "JOB", "TABLE") and self.ahead().kind in (
            "word",
            "quoted",
            "string",
        ):
            kind = self.advance().key
        if kind == "MODEL":
            return self._refuse(at, "DESCRIBE MODEL", "models are not supported")
        if kind == "JOB":
            return s.Describe(at, (self.string(),), kind)
        extended = self.take("EXTENDED")
        return s.Describe(at, self.path(), kind, extended)

    _desc = _describe

    def _use(self) -> s.Statement:
        at = self.advance().start
        if self.take("CATALOG"):
            return s.Use(at, "CATALOG", (self.name(),))
        if self.take("MODULES"):
            return s.Use(at, "MODULES", self.many(self.name))
        return s.Use(at, "DATABASE", self.path())

    def _set(self) -> s.Statement:
        at = self.advance().start
        if self.token.kind == "end" or self.is_op(";"):
            return s.SetOption(at)
        key = self._key()
        self.expect_op("=")
        if self.token.kind == "string":
            return s.SetOption(at, key, self.string())
        start = self.at
        while not self.is_op(";") and self.token.kind != "end":
            self.advance()
        return s.SetOption(at, key, self.text[start : self.at].strip())

    def _key(self) -> str:
        return self.string() if self.token.kind == "string" else self._bare_key()

    def _bare_key(self) -> str:
        start = self.at
        while not self.is_op("=", ";") and self.token.kind != "end":
            self.advance()
        key = self.text[start : self.at].strip()
        return key or self.fail("the key of an option in quotes")

    def _reset(self) -> s.Statement:
        at = self.advance().start
        if self.token.kind == "end" or self.is_op(";"):
            return s.ResetOption(at)
        return s.ResetOption(at, self._key())

    def _load(self) -> s.Statement:
        at = self.advance().start
        self.expect("MODULE")
        return s.Module(at, "LOAD", self.name(), self._options())

    def _unload(self) -> s.Statement:
        at = self.advance().start
        self.expect("MODULE")
        return s.Module(at, "UNLOAD", self.name())

    # ------------------------------------------------------------------------------------------- what runs a job

    def _stop(self) -> s.Statement:
        at = self.advance().start
        self.expect("JOB")
        job = self.string()
        savepoint = self.take("WITH", "SAVEPOINT")
        if self.is_word("WITH", "DRAIN") and not savepoint:
            self.fail("WITH SAVEPOINT", hint="a job is drained into a savepoint: WITH SAVEPOINT WITH DRAIN")
        return s.StopJob(at, job, savepoint, savepoint and self.take("WITH", "DRAIN"))

    def _insert(self) -> s.Statement:
        at = self.advance().start
        overwrite = self.take_any("INTO", "OVERWRITE") or self.fail("INTO or OVERWRITE")
        table = self.path()
        hints = self.hints()
        partition: tuple[tuple[str, s.Expr | None], ...] = ()
        if self.take("PARTITION"):
            partition = self.wrapped(self._partition_value)
        columns: tuple[str, ...] = ()
        if self.is_op("(") and not self.is_query():
            columns = self.wrapped(self.name)
        query = self.query()
        conflict = None
        if self.take("ON", "CONFLICT"):
            self.expect("DO")
            conflict = self.take_any("DEDUPLICATE", "ERROR", "NOTHING") or self.fail("DEDUPLICATE, ERROR or NOTHING")
        return s.Insert(at, table, query, columns, partition, overwrite == "OVERWRITE", hints, conflict)

    def _partition_value(self) -> tuple[str, s.Expr | None]:
        name = self.name()
        return name, self.expression() if self.take_op("=") else None

    def _begin(self) -> s.Statement:
        at = self.advance().start
        self.expect("STATEMENT", "SET")
        return self._set_body(at)

    def _set_body(self, at: int) -> s.StatementSet:
        self.take_op(";")
        inserts: list[s.Insert] = []
        while not self.is_word("END"):
            if not self.is_word("INSERT"):
                self.fail("INSERT or END")
            found = self._insert()
            assert isinstance(found, s.Insert)
            inserts.append(found)
            if self.take_op(";") is None and not self.is_word("END"):
                self.fail("';'")
        self.advance()
        if not inserts:
            self.fail("INSERT", at=at)
        return s.StatementSet(at, tuple(inserts))

    def _execute(self) -> s.Statement:
        at = self.advance().start
        if self.take("PLAN"):
            return s.PlanFile(at, "EXECUTE", self.string())
        if self.take("STATEMENT", "SET"):
            self.expect("BEGIN")
            return self._set_body(at)
        return self._inner()

    def _inner(self) -> s.Statement:
        if self.is_word("INSERT"):
            return self._insert()
        if self.is_word("CREATE"):
            return self._create()
        if self.is_any("STATEMENT", "EXECUTE"):
            at = self.at
            self.take("EXECUTE")
            self.expect("STATEMENT", "SET", "BEGIN")
            return self._set_body(at)
        return s.SelectStatement(self.at, self.query())

    def _explain(self) -> s.Statement:
        at = self.advance().start
        details: list[str] = []
        if self.take("PLAN"):
            if self.take_any("FOR", "WITHOUT") is None:
                self.fail("FOR")
        else:
            known = ("ESTIMATED_COST", "CHANGELOG_MODE", "JSON_EXECUTION_PLAN", "PLAN_ADVICE")
            while (word := self.take_any(*known)) is not None:
                details.append(word)
                self.take_op(",")
        return s.Explain(at, self._inner(), tuple(details))

    def _compile(self) -> s.Statement:
        at = self.advance().start
        execute = self.take("AND", "EXECUTE")
        self.expect("PLAN")
        path = self.string()
        missing = self._if_not_exists()
        self.expect("FOR")
        action = "COMPILE AND EXECUTE" if execute else "COMPILE"
        return s.PlanFile(at, action, path, self._inner(), missing)

    # ------------------------------------------------------------------------------------------- what is refused

    def _truncate(self) -> s.Statement:
        return self._refuse(self.at, "TRUNCATE TABLE", "no connector can empty its table")

    def _analyze(self) -> s.Statement:
        return self._refuse(self.at, "ANALYZE TABLE", "there are no table statistics")

    def _delete(self) -> s.Statement:
        return self._refuse(self.at, "DELETE", "rows of a table cannot be changed in place")

    def _update(self) -> s.Statement:
        return self._refuse(self.at, "UPDATE", "rows of a table cannot be changed in place")

    def _add(self) -> s.Statement:
        return self._refuse(self.at, "ADD JAR", "no Java code is loaded; add Python files by the option python.files")

    def _remove(self) -> s.Statement:
        return self._refuse(self.at, "REMOVE JAR", "no Java code is loaded")

    def _call(self) -> s.Statement:
        return self._refuse(self.at, "CALL", "there are no procedures")


def _refusal(kind: str) -> str:
    named = {"MODEL": "models", "MATERIALIZED": "materialized tables", "CONNECTION": "connections"}
    return f"{named[kind]} are not supported"
