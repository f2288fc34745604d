"""Grammar of statements.

Promises: every statement of Flink SQL is parsed, or refused with its name.
Does not know: catalogs."""

from __future__ import annotations

from collections.abc import Callable

from millstream.sql.errors import nearest
from millstream.sql.syntax import tree as s
from millstream.sql.syntax.alterations import AlterationParser
from millstream.sql.syntax.cursor import Cursor
from millstream.sql.syntax.definitions import DefinitionParser, parse_unsupported
from millstream.sql.syntax.hints import parse_hints
from millstream.sql.syntax.modifications import parse_delete, parse_truncate, parse_update
from millstream.sql.syntax.queries import QueryParser
from millstream.sql.syntax.type_names import TypeParser

_SHOW_SUBJECTS = (
    *("CATALOGS", "DATABASES", "TABLES", "VIEWS", "COLUMNS", "PARTITIONS", "FUNCTIONS", "MODULES", "JARS", "JOBS"),
    *("PROCEDURES", "CURRENT", "CREATE", "USER", "FULL", "MODELS", "MATERIALIZED"),
)
_UNSUPPORTED_STATEMENTS = {
    "ADD": ("ADD JAR", "no Java code is loaded; add Python files with the option python.files"),
    "REMOVE": ("REMOVE JAR", "no Java code is loaded"),
}
_EXPLAIN_DETAILS = ("ESTIMATED_COST", "CHANGELOG_MODE", "JSON_EXECUTION_PLAN", "PLAN_ADVICE")


class StatementParser:
    """Parses statements."""

    __slots__ = ("_alterations", "_cursor", "_definitions", "_queries")

    def __init__(self, cursor: Cursor) -> None:
        types = TypeParser(cursor)
        self._cursor = cursor
        self._queries = QueryParser(cursor, types)
        self._definitions = DefinitionParser(cursor, types, self._queries)
        self._alterations = AlterationParser(cursor, self._definitions)

    def parse_statement(self) -> s.Statement:
        """Parse one statement, up to its semicolon or the end of the text."""
        cursor = self._cursor
        if cursor.is_next("("):
            return self._parse_select()
        parse = STATEMENTS.get(cursor.token.key)
        if parse is None:
            hint = nearest(cursor.token.text, STATEMENTS) if cursor.token.type == "word" else None
            cursor.reject("a statement", hint=hint)
        return parse(self)

    def _parse_unsupported(self) -> s.Statement:
        what, reason = _UNSUPPORTED_STATEMENTS[self._cursor.token.key]
        return parse_unsupported(self._cursor, self._cursor.at, what, reason)

    # --------------------------------------------------------------------------------------------- catalogs and tables

    def _parse_create(self) -> s.Statement:
        return self._definitions.parse_create()

    def _parse_replace(self) -> s.Statement:
        return self._definitions.parse_replace()

    def _parse_drop(self) -> s.Statement:
        return self._definitions.parse_drop()

    def _parse_alter(self) -> s.Statement:
        return self._alterations.parse_alter()

    def _parse_show(self) -> s.Statement:
        """SHOW subject [(FROM | IN) name] [[NOT] (LIKE | ILIKE) pattern]."""
        cursor = self._cursor
        at = cursor.advance().start
        subject = cursor.accept_any(*_SHOW_SUBJECTS)
        if subject is None:
            hint = nearest(cursor.token.text, _SHOW_SUBJECTS) if cursor.token.type == "word" else None
            cursor.reject("what to show", hint=hint)
        if subject == "PARTITIONS":
            table = cursor.parse_path()
            partition = self._definitions.parse_partition() if cursor.is_next("PARTITION") else ()
            return s.Show(at, subject, table, partition=partition)
        if subject == "CREATE" and cursor.accept("OR"):
            cursor.expect("ALTER")
            subject = "CREATE OR ALTER"
            if not cursor.is_next("MATERIALIZED"):
                cursor.reject("MATERIALIZED TABLE")
        if subject == "MATERIALIZED":
            cursor.expect("TABLES")
            subject = "MATERIALIZED TABLES"
        if subject in ("CURRENT", "USER", "FULL", "CREATE", "CREATE OR ALTER"):
            subject = f"{subject} {cursor.advance().key}"
        if subject.endswith(" MATERIALIZED"):
            cursor.expect("TABLE")
            subject = f"{subject} TABLE"
        name: tuple[str, ...] = ()
        if subject.startswith("CREATE ") or cursor.accept_any("FROM", "IN"):
            name = cursor.parse_path()
        negated = cursor.accept("NOT")
        like = cursor.accept_any("LIKE", "ILIKE")
        pattern = cursor.parse_string() if like else None
        return s.Show(at, subject, name, pattern, negated, like == "ILIKE")

    def _parse_describe(self) -> s.Statement:
        """(DESCRIBE | DESC) [type] [EXTENDED] name."""
        cursor = self._cursor
        at = cursor.advance().start
        object_type = "TABLE"
        if cursor.peek().type in ("word", "quoted", "string"):  # otherwise the word is the name of a table
            object_type = cursor.accept_any("DATABASE", "CATALOG", "FUNCTION", "MODEL", "JOB", "TABLE") or "TABLE"
        if object_type == "JOB":
            return s.Describe(at, (cursor.parse_string(),), object_type)
        extended = cursor.accept("EXTENDED")
        return s.Describe(at, cursor.parse_path(), object_type, extended)

    def _parse_use(self) -> s.Statement:
        """USE [CATALOG | MODULES] name."""
        cursor = self._cursor
        at = cursor.advance().start
        if cursor.accept("CATALOG"):
            return s.Use(at, "CATALOG", (cursor.parse_name(),))
        if cursor.accept("MODULES"):
            return s.Use(at, "MODULES", cursor.parse_list(cursor.parse_name))
        return s.Use(at, "DATABASE", cursor.parse_path())

    def _parse_load(self) -> s.Statement:
        """LOAD MODULE name [WITH (...)]."""
        at = self._cursor.advance().start
        self._cursor.expect("MODULE")
        return s.Module(at, "LOAD", self._cursor.parse_name(), self._definitions.parse_options())

    def _parse_unload(self) -> s.Statement:
        """UNLOAD MODULE name."""
        at = self._cursor.advance().start
        self._cursor.expect("MODULE")
        return s.Module(at, "UNLOAD", self._cursor.parse_name())

    # -------------------------------------------------------------------------------------------------------- options

    def _parse_set(self) -> s.Statement:
        """SET ['key' = 'value']; the quotes can be left out."""
        cursor = self._cursor
        at = cursor.advance().start
        if cursor.is_at_end:
            return s.SetOption(at)
        key = self._parse_option_key()
        cursor.expect("=")
        if cursor.token.type == "string":
            return s.SetOption(at, key, cursor.parse_string())
        return s.SetOption(at, key, cursor.skip_statement().strip())

    def _parse_reset(self) -> s.Statement:
        """RESET ['key']."""
        at = self._cursor.advance().start
        return s.ResetOption(at) if self._cursor.is_at_end else s.ResetOption(at, self._parse_option_key())

    def _parse_option_key(self) -> str:
        cursor = self._cursor
        if cursor.token.type == "string":
            return cursor.parse_string()
        start = cursor.at
        while not cursor.is_next("=") and not cursor.is_at_end:
            cursor.advance()
        key = cursor.text[start : cursor.at].strip()
        if not key:
            cursor.reject("the key of an option in quotes")
        return key

    # ------------------------------------------------------------------------------------------------ queries and jobs

    def _parse_select(self) -> s.Statement:
        return s.SelectStatement(self._cursor.at, self._queries.parse_query())

    def _parse_insert(self) -> s.Insert:
        """INSERT (INTO | OVERWRITE) table [PARTITION (...)] [(column, ...)] query [ON CONFLICT DO ...]."""
        cursor = self._cursor
        at = cursor.advance().start
        overwrite = cursor.expect_any("INTO", "OVERWRITE") == "OVERWRITE"
        table_at, table = cursor.at, cursor.parse_path()
        hints = parse_hints(cursor)
        partition = self._definitions.parse_partition() if cursor.is_next("PARTITION") else ()
        columns: tuple[str, ...] = ()
        if cursor.is_next("(") and not cursor.is_query_next():
            columns = cursor.parse_parenthesized(cursor.parse_name)
        query = self._queries.parse_query()
        conflict = None
        if cursor.accept("ON", "CONFLICT"):
            cursor.expect("DO")
            conflict = cursor.expect_any("DEDUPLICATE", "ERROR", "NOTHING")
        return s.Insert(at, table, query, columns, partition, overwrite, hints, conflict, table_at)

    def _parse_delete(self) -> s.Statement:
        return parse_delete(self._cursor, self._queries)

    def _parse_update(self) -> s.Statement:
        return parse_update(self._cursor, self._queries)

    def _parse_truncate(self) -> s.Statement:
        return parse_truncate(self._cursor)

    def _parse_analyze(self) -> s.Statement:
        """ANALYZE TABLE table [PARTITION (...)] COMPUTE STATISTICS [FOR COLUMNS column, ... | FOR ALL COLUMNS]."""
        cursor = self._cursor
        at = cursor.advance().start
        cursor.expect("TABLE")
        table_at, table = cursor.at, cursor.parse_path()
        partition = self._definitions.parse_partition() if cursor.is_next("PARTITION") else ()
        cursor.expect("COMPUTE", "STATISTICS")
        columns: tuple[str, ...] | None = ()
        if cursor.accept("FOR", "ALL", "COLUMNS"):
            columns = None
        elif cursor.accept("FOR"):
            cursor.expect("COLUMNS")
            columns = cursor.parse_list(cursor.parse_name)
        return s.Analyze(at, table, partition, columns, table_at)

    def _parse_call(self) -> s.Statement:
        """CALL procedure([argument | name => argument], ...)."""
        at = self._cursor.advance().start
        name = self._cursor.parse_path()
        call = self._queries.expressions.calls.parse_call(at, ("", *name))
        return s.CallProcedure(at, name, call.args)

    def _parse_begin(self) -> s.Statement:
        """BEGIN STATEMENT SET; insert; ... END."""
        at = self._cursor.advance().start
        self._cursor.expect("STATEMENT", "SET")
        return self._parse_inserts(at, may_be_empty=True)

    def _parse_inserts(self, at: int, *, may_be_empty: bool = False) -> s.StatementSet:
        cursor = self._cursor
        cursor.accept(";")
        inserts: list[s.Insert] = []
        while not cursor.accept("END"):
            if not cursor.is_next("INSERT"):
                cursor.reject("INSERT or END")
            inserts.append(self._parse_insert())
            if not cursor.accept(";") and not cursor.is_next("END"):
                cursor.reject("';'")
        if not inserts and not may_be_empty:
            cursor.fail("a statement set needs at least one INSERT", at=at)
        return s.StatementSet(at, tuple(inserts))

    def _parse_execute(self) -> s.Statement:
        """EXECUTE PLAN 'file', EXECUTE STATEMENT SET BEGIN ... END, or EXECUTE statement."""
        cursor = self._cursor
        at = cursor.advance().start
        if cursor.accept("PLAN"):
            return s.PlanFile(at, "EXECUTE", cursor.parse_string())
        if cursor.accept("STATEMENT", "SET"):
            cursor.expect("BEGIN")
            return self._parse_inserts(at)
        return self._parse_job_statement()

    def _parse_job_statement(self) -> s.Statement:
        """Parse a statement that can be explained, compiled and executed."""
        cursor = self._cursor
        if cursor.is_next("INSERT"):
            return self._parse_insert()
        if cursor.is_next("DELETE"):
            return self._parse_delete()
        if cursor.is_next("UPDATE"):
            return self._parse_update()
        if cursor.is_next("CREATE"):
            return self._definitions.parse_create()
        if cursor.is_next("REPLACE"):
            return self._definitions.parse_replace()
        if cursor.is_any("STATEMENT", "EXECUTE"):
            at = cursor.at
            if cursor.accept("EXECUTE") and not cursor.is_next("STATEMENT"):
                return self._parse_job_statement()
            cursor.expect("STATEMENT", "SET", "BEGIN")
            return self._parse_inserts(at)
        return self._parse_select()

    def _parse_explain(self) -> s.Statement:
        """EXPLAIN [PLAN FOR | detail, ...] statement."""
        cursor = self._cursor
        at = cursor.advance().start
        details: list[str] = []
        if cursor.accept("PLAN"):
            if cursor.accept_any("FOR", "WITHOUT") is None:
                cursor.reject("FOR")
            return s.Explain(at, self._parse_job_statement())
        while (detail := cursor.accept_any(*_EXPLAIN_DETAILS)) is not None:
            details.append(detail)
            cursor.accept(",")
        token = cursor.token
        if token.type == "word" and token.key not in STATEMENTS and token.key != "STATEMENT":
            cursor.reject("a detail or a statement to explain", hint=nearest(token.key, _EXPLAIN_DETAILS))
        return s.Explain(at, self._parse_job_statement(), tuple(details))

    def _parse_compile(self) -> s.Statement:
        """COMPILE [AND EXECUTE] PLAN 'file' [IF NOT EXISTS] FOR statement."""
        cursor = self._cursor
        at = cursor.advance().start
        action = "COMPILE AND EXECUTE" if cursor.accept("AND", "EXECUTE") else "COMPILE"
        cursor.expect("PLAN")
        path = cursor.parse_string()
        if_not_exists = self._definitions.parse_if_not_exists()
        cursor.expect("FOR")
        return s.PlanFile(at, action, path, self._parse_job_statement(), if_not_exists)

    def _parse_stop(self) -> s.Statement:
        """STOP JOB 'id' [WITH SAVEPOINT [WITH DRAIN]]."""
        cursor = self._cursor
        at = cursor.advance().start
        cursor.expect("JOB")
        job = cursor.parse_string()
        savepoint = cursor.accept("WITH", "SAVEPOINT")
        if cursor.is_next("WITH", "DRAIN") and not savepoint:
            hint = "a job can be drained only with a savepoint: WITH SAVEPOINT WITH DRAIN"
            cursor.reject("WITH SAVEPOINT", hint=hint)
        return s.StopJob(at, job, savepoint, savepoint and cursor.accept("WITH", "DRAIN"))


STATEMENTS: dict[str, Callable[[StatementParser], s.Statement]] = {
    "SELECT": StatementParser._parse_select,
    "WITH": StatementParser._parse_select,
    "VALUES": StatementParser._parse_select,
    "TABLE": StatementParser._parse_select,
    "CREATE": StatementParser._parse_create,
    "REPLACE": StatementParser._parse_replace,
    "ALTER": StatementParser._parse_alter,
    "DROP": StatementParser._parse_drop,
    "INSERT": StatementParser._parse_insert,
    "DELETE": StatementParser._parse_delete,
    "UPDATE": StatementParser._parse_update,
    "TRUNCATE": StatementParser._parse_truncate,
    "ANALYZE": StatementParser._parse_analyze,
    "SHOW": StatementParser._parse_show,
    "DESCRIBE": StatementParser._parse_describe,
    "DESC": StatementParser._parse_describe,
    "USE": StatementParser._parse_use,
    "EXPLAIN": StatementParser._parse_explain,
    "EXECUTE": StatementParser._parse_execute,
    "COMPILE": StatementParser._parse_compile,
    "SET": StatementParser._parse_set,
    "RESET": StatementParser._parse_reset,
    "LOAD": StatementParser._parse_load,
    "UNLOAD": StatementParser._parse_unload,
    "BEGIN": StatementParser._parse_begin,
    "CALL": StatementParser._parse_call,
    "STOP": StatementParser._parse_stop,
    **dict.fromkeys(_UNSUPPORTED_STATEMENTS, StatementParser._parse_unsupported),
}
