"""The words of the language: what the shell colours and completes.

Promises: every word that begins a statement or a clause is there.
Does not know: where a word may stand."""

from __future__ import annotations

KEYWORDS = frozenset(
    (
        *("ADD", "AFTER", "ALL", "ALTER", "ANALYZE", "AND", "ANTI", "ANY", "AS", "ASC", "ASOF", "BEGIN"),
        *("BETWEEN", "BY", "CASCADE", "CASE", "CAST", "CATALOG", "CATALOGS", "CHANGELOG_MODE", "COLUMN"),
        *("COLUMNS", "COMMENT", "COMPILE", "CONSTRAINT", "CREATE", "CROSS", "CUBE", "CUMULATE", "CURRENT"),
        *("DATABASE", "DATABASES", "DEFINE", "DESC", "DESCRIBE", "DESCRIPTOR", "DISTINCT", "DISTRIBUTED"),
        *("DRAIN", "DROP", "ELSE", "END", "ENFORCED", "ESCAPE", "ESTIMATED_COST", "EXCEPT", "EXCLUDING"),
        *("EXECUTE", "EXISTS", "EXPLAIN", "EXTENDED", "FALSE", "FETCH", "FILTER", "FIRST", "FOLLOWING", "FOR"),
        *("FROM", "FULL", "FUNCTION", "FUNCTIONS", "GROUP", "GROUPING", "HAVING", "HOP", "IF", "ILIKE", "IN"),
        *("INCLUDING", "INNER", "INSERT", "INTERSECT", "INTERVAL", "INTO", "IS", "JOB", "JOBS", "JOIN"),
        *("JSON_EXECUTION_PLAN", "KEY", "LANGUAGE", "LAST", "LATERAL", "LEFT", "LIKE", "LIMIT", "LOAD"),
        *("MATCH_RECOGNIZE", "MEASURES", "METADATA", "MODIFY", "MODULE", "MODULES", "NATURAL", "NEXT", "NOT"),
        *("NULL", "NULLS", "OFFSET", "ON", "ONLY", "OR", "ORDER", "ORDINALITY", "OUTER", "OVER", "OVERWRITE"),
        *("OVERWRITING", "PARTITION", "PARTITIONED", "PARTITIONS", "PAST", "PATTERN", "PER", "PLAN"),
        *("PLAN_ADVICE", "PRECEDING", "PRIMARY", "PYTHON", "RANGE", "RENAME", "REPLACE", "RESET", "RESTRICT"),
        *("RIGHT", "ROLLUP", "ROW", "ROWS", "SAVEPOINT", "SELECT", "SEMI", "SESSION", "SET", "SETS", "SHOW"),
        *("SIMILAR", "SKIP", "SOME", "STATEMENT", "STOP", "SYSTEM", "SYSTEM_TIME", "TABLE", "TABLES"),
        *("TEMPORARY", "THEN", "TO", "TRUE", "TUMBLE", "UNBOUNDED", "UNION", "UNIQUE", "UNKNOWN", "UNLOAD"),
        *("UNNEST", "USE", "USER", "USING", "VALUES", "VIEW", "VIEWS", "VIRTUAL", "WATERMARK", "WHEN", "WHERE"),
        *("WINDOW", "WITH", "WITHIN", "WITHOUT"),
    )
)
TYPES = frozenset(
    (
        *("ARRAY", "BIGINT", "BINARY", "BOOLEAN", "BYTES", "CHAR", "DATE", "DECIMAL", "DOUBLE", "FLOAT", "INT"),
        *("INTEGER", "MAP", "MULTISET", "NUMERIC", "PRECISION", "REAL", "SMALLINT", "STRING", "TIME"),
        *("TIMESTAMP", "TIMESTAMP_LTZ", "TINYINT", "VARBINARY", "VARCHAR", "VARIANT", "YEAR", "MONTH", "DAY", "HOUR"),
        *("MINUTE", "SECOND", "SECONDS", "MINUTES", "HOURS", "DAYS", "LOCAL", "ZONE"),
    )
)
COMMANDS = ("QUIT", "EXIT", "CLEAR", "HELP", "SOURCE", "DRAW")
STATEMENTS = (
    *("SELECT", "WITH", "VALUES", "CREATE", "ALTER", "DROP", "INSERT", "SHOW", "DESCRIBE", "USE", "EXPLAIN", "EXECUTE"),
    *("COMPILE", "SET", "RESET", "LOAD", "UNLOAD", "BEGIN", "STOP"),
)
