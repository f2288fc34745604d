"""The grammar of statements.

Promises: every statement of Flink SQL is parsed or refused by name; nothing is taken for something else.
Does not know: catalogs."""

from __future__ import annotations

from collections.abc import Callable

from millstream.sql.errors import nearest
from millstream.sql.syntax import tree as s
from millstream.sql.syntax.definitions import DefinitionGrammar, refusal

_STATEMENTS = (
    *("SELECT", "WITH", "VALUES", "CREATE", "ALTER", "DROP", "INSERT", "SHOW", "DESCRIBE", "DESC", "USE", "EXPLAIN"),
    *("EXECUTE", "COMPILE", "SET", "RESET", "LOAD", "UNLOAD", "BEGIN", "TRUNCATE", "ANALYZE", "DELETE", "UPDATE"),
    *("ADD", "REMOVE", "CALL", "STOP", "TABLE", "REPLACE"),
)
_SHOWN = (
    *("CATALOGS", "DATABASES", "TABLES", "VIEWS", "COLUMNS", "PARTITIONS", "FUNCTIONS", "MODULES", "JARS", "JOBS"),
    *("PROCEDURES", "CURRENT", "CREATE", "USER", "FULL", "MODELS", "MATERIALIZED"),
)


class StatementGrammar(DefinitionGrammar):
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

    # ------------------------------------------------------------------------------------------ SHOW and its kin

    def _show(self) -> s.Statement:
        at = self.advance().start
        kind = self.take_any(*_SHOWN)
        if kind is None:
            hint = nearest(self.token.text, _SHOWN) if self.token.kind == "word" else None
            self.fail("what to show", hint=hint)
        if kind in ("MODELS", "MATERIALIZED", "PROCEDURES"):
            return self._refuse(at, f"SHOW {kind}", refusal(kind.removesuffix("S")))
        if kind == "CREATE" and self.is_any("MODEL", "MATERIALIZED"):
            return self._refuse(at, f"SHOW CREATE {self.token.key}", refusal(self.token.key))
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
        table_at, table = self.at, self.path()
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
        return s.Insert(at, table, query, columns, partition, overwrite == "OVERWRITE", hints, conflict, table_at)

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
        if self.is_word("REPLACE"):
            return self._replace()
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
            if self.token.kind == "word" and self.token.key not in _STATEMENTS and self.token.key != "STATEMENT":
                self.fail("a detail, or what to explain", hint=nearest(self.token.key, known))
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
