"""Editor support for SQL: syntax highlighting, and completion of keywords, tables, columns, functions and options.

Promises: pure functions of the text and of the known names; any text can be highlighted and completed.
Does not know: terminals, colours, how candidates are offered."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from millstream import options
from millstream.cli.shell.statements import split_statements
from millstream.sql.catalog.catalog import Catalogs
from millstream.sql.connectors.registry import list_connectors
from millstream.sql.functions.aggregates import AGGREGATES
from millstream.sql.functions.library import list_names

_WORD = re.compile(r"`?[\w$]*\Z")
_OPTION = re.compile(r"'[^'\n]*\Z")
_NAME = r"(?:`[^`]+`|[^\W\d][\w$]*)"
_PATH = rf"{_NAME}(?:\s*\.\s*{_NAME}){{0,2}}"
_QUALIFIER = re.compile(rf"({_PATH})\s*\.\s*`?[\w$]*\Z")
_BEFORE_TABLE = re.compile(r"\b(?:FROM|JOIN|INTO|OVERWRITE|TABLE|VIEW|DESCRIBE|DESC|LIKE|EXTENDED|EXISTS)\s+$", re.I)
_BEFORE_KEY = re.compile(r"^\s*(?:SET|RESET)\s+$", re.I)
_BEFORE_CONNECTOR = re.compile(r"'connector'\s*=\s*$", re.I)
_TABLE_REFERENCE = re.compile(rf"\b(?:FROM|JOIN|INTO|TABLE|,)\s+({_PATH})(?:\s+(?:AS\s+)?({_NAME}))?", re.I)
_IDENTIFIER = re.compile(r"[^\W\d]\w*\Z")


@dataclass(frozen=True)
class Names:
    """The names that exist: tables with their columns by each valid path, functions, options and connectors."""

    tables: Mapping[str, Sequence[str]] = field(default_factory=dict)
    functions: Iterable[str] = ()
    options: Iterable[str] = ()
    connectors: Iterable[str] = ()


@dataclass(frozen=True)
class Candidate:
    """A completion: a text that replaces the last `replaces` characters, and its kind."""

    text: str
    replaces: int
    kind: str


def complete(before: str, after: str, names: Names) -> list[Candidate]:
    """Return the completions at the cursor, between the texts `before` and `after` it, the most likely first."""
    statements = split_statements(before)
    statement = before[statements[-1].start :] if statements and not statements[-1].is_closed else ""
    option = _OPTION.search(statement)
    if option is not None and statement.count("'") % 2:
        return _complete_string(option.group(), statement[: option.start()], names)
    word = _WORD.search(statement)
    typed = word.group() if word is not None else ""
    head = statement[: len(statement) - len(typed)]
    if not head.strip():
        return _match(typed, (("statement", STATEMENTS), ("command", COMMANDS)))
    whole = statement + after.partition(";")[0]
    qualifier = _QUALIFIER.search(statement)
    if qualifier is not None:
        return _complete_qualified(_unquote(qualifier.group(1)), typed, _find_tables(whole, names), names)
    if _BEFORE_KEY.match(head):
        return _match(typed, (("option", [f"'{key}'" for key in names.options]),), show_all=True)
    if _BEFORE_TABLE.search(head):
        return _match(typed, (("table", _quote_paths(names.tables)), ("keyword", KEYWORDS)))
    columns = {column for table in _find_tables(whole, names).values() for column in names.tables[table]}
    groups = (
        ("column", _quote_paths(sorted(columns))),
        ("keyword", sorted(KEYWORDS)),
        ("function", [f"{name}(" for name in names.functions]),
        ("type", sorted(TYPES)),
        ("table", _quote_paths(names.tables)),
    )
    return _match(typed, groups)


def _complete_string(typed: str, head: str, names: Names) -> list[Candidate]:
    if _BEFORE_KEY.match(head):
        return _match(typed, (("option", [f"'{key}'" for key in names.options]),), show_all=True)
    if _BEFORE_CONNECTOR.search(head):
        return _match(typed, (("connector", [f"'{name}'" for name in names.connectors]),), show_all=True)
    return []


def _complete_qualified(qualifier: str, typed: str, tables: Mapping[str, str], names: Names) -> list[Candidate]:
    table = tables.get(qualifier) or (qualifier if qualifier in names.tables else None)
    columns = [] if table is None else _quote_paths(names.tables[table])
    inside = [path[len(qualifier) + 1 :] for path in names.tables if path.startswith(f"{qualifier}.")]
    return _match(typed, (("column", columns), ("table", inside)))


def _find_tables(statement: str, names: Names) -> dict[str, str]:
    """The tables that a statement references, by name and alias."""
    tables: dict[str, str] = {}
    for path, alias in _TABLE_REFERENCE.findall(statement):
        table = _unquote(path)
        if table in names.tables:
            tables[table] = table
            if alias and alias.upper() not in KEYWORDS:
                tables[_unquote(alias)] = table
    return tables


def _unquote(path: str) -> str:
    return re.sub(r"\s*\.\s*", ".", path).replace("`", "")


def _quote_paths(paths: Iterable[str]) -> list[str]:
    """Quote the parts of paths that need it."""
    return [".".join(part if _needs_no_quotes(part) else _quote(part) for part in path.split(".")) for path in paths]


def _quote(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _needs_no_quotes(name: str) -> bool:
    return _IDENTIFIER.match(name) is not None and name.upper() not in KEYWORDS


def _match(typed: str, groups: Sequence[tuple[str, Iterable[str]]], *, show_all: bool = False) -> list[Candidate]:
    prefix = typed.strip("'`").lower()
    if not (prefix or show_all or any(kind in ("table", "column", "statement", "option") for kind, _ in groups[:1])):
        return []
    is_lower = typed.islower()
    candidates: dict[str, Candidate] = {}
    for kind, texts in groups:
        for text in texts:
            if text.strip("'`").lower().startswith(prefix):
                shown = text.lower() if is_lower and kind in ("keyword", "type", "statement", "command") else text
                candidates.setdefault(shown, Candidate(shown, len(typed), kind))
    return list(candidates.values())


KEYWORDS = frozenset(
    (
        *("ADD", "AFTER", "ALL", "ALTER", "ANALYZE", "AND", "ANTI", "ANY", "AS", "ASC", "ASOF", "BEGIN"),
        *("BETWEEN", "BY", "CASCADE", "CASE", "CAST", "CATALOG", "CATALOGS", "CHANGELOG_MODE", "COLUMN"),
        *("COLUMNS", "COMMENT", "COMPILE", "CONSTRAINT", "CREATE", "CROSS", "CUBE", "CUMULATE", "CURRENT"),
        *("DATABASE", "DATABASES", "DEFINE", "DELETE", "DESC", "DESCRIBE", "DESCRIPTOR", "DISTINCT", "DISTRIBUTED"),
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
        *("TEMPORARY", "THEN", "TO", "TRUE", "TRUNCATE", "TUMBLE", "UNBOUNDED", "UNION", "UNIQUE", "UNKNOWN"),
        *("UNLOAD", "UNNEST", "UPDATE", "USE", "USER", "USING", "VALUES", "VIEW", "VIEWS", "VIRTUAL", "WATERMARK"),
        *("WHEN", "WHERE", "WINDOW", "WITH", "WITHIN", "WITHOUT"),
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


_TOKEN = re.compile(
    r"""
    (?P<comment>--[^\n]*|/\*(?!\+).*?(?:\*/|\Z))
  | (?P<string>'(?:[^']|'')*(?:'|\Z))
  | (?P<name>`(?:[^`]|``)*(?:`|\Z))
  | (?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
  | (?P<word>[^\W\d][\w$]*)
  | (?P<hint>/\*\+|\*/)
  | (?P<operator>[-+*/%<>=(),.;\[\]]+)
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)


def highlight(text: str) -> list[tuple[str, str]]:
    """Split a text into (kind, token): keyword, type, function, string, name, number, comment, hint or plain."""
    tokens: list[tuple[str, str]] = []
    for match in _TOKEN.finditer(text):
        kind, token = match.lastgroup or "other", match.group()
        if kind == "word":
            tokens.append((_classify_word(token, text[match.end() : match.end() + 1]), token))
        elif kind in ("operator", "other"):
            tokens.append(("plain", token))
        else:
            tokens.append((kind, token))
    return tokens


def highlight_lines(text: str) -> list[list[tuple[str, str]]]:
    """Highlight a text line by line."""
    lines: list[list[tuple[str, str]]] = [[]]
    for kind, token in highlight(text):
        first, *following = token.split("\n")
        lines[-1].append((kind, first))
        lines.extend([(kind, part)] for part in following)
    return lines


def _classify_word(word: str, follows: str) -> str:
    upper = word.upper()
    if upper in KEYWORDS or upper in COMMANDS:
        return "keyword"
    if upper in TYPES and follows != "(":
        return "type"
    return "function" if follows == "(" else "plain"


def collect_names(catalogs: Catalogs) -> Names:
    """Collect all names of a session that can be completed."""
    tables: dict[str, list[str]] = {}
    for catalog in catalogs.all.values():
        for database in catalog.databases:
            for name in catalogs.table_names(catalog.name, database):
                full = (catalog.name, database, name)
                columns = list(catalogs.table(full)[1].schema.names)
                tables[".".join(full)] = columns
                if catalog.name == catalogs.current_catalog:
                    tables[f"{database}.{name}"] = columns
                    if database == catalogs.current_database:
                        tables[name] = columns
    builtin = {name for name in (*list_names(), *AGGREGATES) if name.isidentifier()}
    return Names(
        dict(sorted(tables.items(), key=lambda item: (item[0].count("."), item[0]))),
        sorted(builtin | set(catalogs.function_names())),
        sorted(key for key, option in options.OPTIONS.items() if option.kind == "used"),
        list_connectors(),
    )
