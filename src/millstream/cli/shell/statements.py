"""Statements of a SQL text: splits a text, recognizes the commands of the shell, and locates statements that fail.

Promises: any text can be split; semicolons in strings, quoted names, comments and statement sets do not end a
statement. A command with wrong syntax raises an error that shows the right form. A failure names the number and line of
its statement.
Does not know: the grammar of SQL, what commands do."""

from __future__ import annotations

import re
from dataclasses import dataclass

from millstream.sql.errors import SqlSyntaxError

_SCAN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<hint>/\*\+)
  | (?P<comment>--[^\n]*|/\*.*?\*/)
  | (?P<closed>'(?:[^']|'')*'|`(?:[^`]|``)*`)
  | (?P<open>/\*.*|'.*|`.*)
  | (?P<word>[^\W\d]\w*)
  | (?P<end>;)
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_WITHOUT_SEMICOLON = ("QUIT", "EXIT", "HELP", "CLEAR")


@dataclass(frozen=True)
class Statement:
    """A statement without its semicolon, and its offset in the text; `is_closed` says whether it had a semicolon."""

    text: str
    start: int
    is_closed: bool


def split_statements(text: str) -> list[Statement]:
    """Split a text into statements; whitespace and comments alone are not a statement."""
    statements: list[Statement] = []
    start: int | None = None
    last = 0
    words: list[str] = []
    in_set = may_end_set = False
    for match in _SCAN.finditer(text):
        kind = match.lastgroup
        if kind in ("space", "comment"):
            continue
        if kind == "end" and not in_set:
            if start is not None:
                statements.append(Statement(text[start:last], start, True))
            start, words = None, []
            continue
        if start is None:
            start = match.start()
        last = match.end()
        if kind == "word":
            words.append(match.group().upper())
            if in_set and may_end_set and words[-1] == "END":
                in_set = False
            elif words == ["BEGIN", "STATEMENT", "SET"] or words[-3:] == ["STATEMENT", "SET", "BEGIN"]:
                in_set = True
        may_end_set = kind == "end" or (in_set and words[-1:] == ["BEGIN"] and kind == "word")
    if start is not None:
        statements.append(Statement(text[start:last], start, False))
    return statements


def is_complete(text: str) -> bool:
    """Whether the last statement of a text has its semicolon or needs none, so that Enter runs it."""
    statements = split_statements(text)
    if not statements or statements[-1].is_closed:
        return True
    return len(statements) == 1 and statements[0].text.strip().upper() in _WITHOUT_SEMICOLON


def line_number(text: str, offset: int) -> int:
    """Return the line number of an offset, counted from 1."""
    return text.count("\n", 0, offset) + 1


_SPACE = r"(?:\s|--[^\n]*(?:\n|\Z)|/\*.*?\*/)"
_COMMAND = re.compile(rf"{_SPACE}*(QUIT|EXIT|CLEAR|HELP|SOURCE|DRAW)\b(.*)\Z", re.IGNORECASE | re.DOTALL)
_STRING = r"'((?:[^']|'')+)'"
_SOURCE = re.compile(rf"\s*{_STRING}\s*\Z")
_DRAW = re.compile(rf"\s+PLAN\s+{_STRING}\s+FOR\s(.+)\Z", re.IGNORECASE | re.DOTALL)
_SYNTAX = {"SOURCE": "SOURCE 'file.sql'", "DRAW": "DRAW PLAN 'plan.svg' FOR SELECT ..."}

HELP = """\
QUIT, EXIT                        leave the shell (also Ctrl-D)
CLEAR                             clear the screen
HELP                              show this text
SOURCE 'file.sql'                 run the statements of a file
DRAW PLAN 'plan.svg' FOR ...      write the plan of a query or an INSERT to a file (.svg, or .mmd for Mermaid)
SET 'key' = 'value', SET, RESET   set or reset an option; SET alone lists the options that are set
SHOW TABLES, DESCRIBE t           list objects; also CATALOGS, DATABASES, VIEWS, FUNCTIONS, MODULES, JOBS
EXPLAIN ...                       show the plan of a query as text
STOP JOB 'id' [WITH SAVEPOINT]    stop a job that runs in the background

A statement ends with a semicolon; before it, Enter begins a new line. Tab completes. Ctrl-C stops a query.
'sql-client.execution.result-mode' is table (the current result), changelog (its changes) or tableau (rows as lines)."""


@dataclass(frozen=True)
class Command:
    """A command of the shell: its keyword, and if it has them, a file and a statement with its offset."""

    word: str
    file: str = ""
    statement: str = ""
    statement_offset: int = 0


def parse_command(text: str) -> Command | None:
    """Parse a command of the shell; returns None for a SQL statement."""
    match = _COMMAND.match(text)
    if match is None:
        return None
    word, rest = match[1].upper(), match[2]
    if word in ("QUIT", "EXIT", "CLEAR", "HELP"):
        if rest.strip():
            message = f"{word} takes no arguments"
            raise SqlSyntaxError(message, at=match.start(2) + len(rest) - len(rest.lstrip()), text=text)
        return Command(word)
    arguments = (_SOURCE if word == "SOURCE" else _DRAW).match(rest)
    if arguments is None:
        message = f"the arguments of {word} are not valid"
        raise SqlSyntaxError(message, at=match.start(1), text=text, hint=f"the syntax is {_SYNTAX[word]}")
    file = arguments[1].replace("''", "'")
    if word == "SOURCE":
        return Command(word, file)
    return Command(word, file, arguments[2], match.start(2) + arguments.start(2))


@dataclass(frozen=True)
class StatementLocation:
    """The number and line of a statement, counted from 1, and the name of the text."""

    number: int
    line: int
    origin: str


class StatementFailed(Exception):
    """A statement failed; `error` is the cause."""

    def __init__(self, error: Exception, location: StatementLocation) -> None:
        self.error, self.location = error, location
        super().__init__(str(error))

    @property
    def prefix(self) -> str:
        """The beginning of the error message, which names the statement."""
        location = self.location
        return f"statement {location.number} of {location.origin} (line {location.line}) failed: "
