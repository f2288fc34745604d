"""The shell's own commands, beside the statements of the language.

Promises: a text is a command or it is none; a command that is written wrongly is refused with its right form.
Does not know: what commands do."""

from __future__ import annotations

import re
from dataclasses import dataclass

from millstream.sql.errors import SqlSyntaxError

_SPACE = r"(?:\s|--[^\n]*(?:\n|\Z)|/\*.*?\*/)"
_COMMAND = re.compile(rf"{_SPACE}*(QUIT|EXIT|CLEAR|HELP|SOURCE|DRAW)\b(.*)\Z", re.IGNORECASE | re.DOTALL)
_STRING = r"'((?:[^']|'')+)'"
_SOURCE = re.compile(rf"\s*{_STRING}\s*\Z")
_DRAW = re.compile(rf"\s+PLAN\s+{_STRING}\s+FOR\s(.+)\Z", re.IGNORECASE | re.DOTALL)
_FORMS = {"SOURCE": "SOURCE 'file.sql'", "DRAW": "DRAW PLAN 'plan.svg' FOR SELECT ..."}

HELP = """\
QUIT, EXIT                        leave the shell (also Ctrl-D)
CLEAR                             clear the screen
HELP                              this text
SOURCE 'file.sql'                 run the statements of a file
DRAW PLAN 'plan.svg' FOR ...      draw the plan of a query or an INSERT (.svg, or .mmd for Mermaid)
SET 'key' = 'value', SET, RESET   options; SET alone shows what is set
SHOW TABLES, DESCRIBE t           what there is; also CATALOGS, DATABASES, VIEWS, FUNCTIONS, MODULES, JOBS
EXPLAIN ...                       the plan of a query as text
STOP JOB 'id' [WITH SAVEPOINT]    end a job that runs in the background

A statement ends with a semicolon. Enter begins a new line until it is there; Tab completes; Ctrl-C stops a query.
'sql-client.execution.result-mode' is table (a table that changes), changelog (its changes) or tableau (lines)."""


@dataclass(frozen=True)
class Command:
    """A command: its word, a file perhaps, and the statement it is about."""

    word: str
    file: str = ""
    statement: str = ""
    statement_at: int = 0


def command(text: str) -> Command | None:
    """The command that a text is, if it is one."""
    match = _COMMAND.match(text)
    if match is None:
        return None
    word, rest = match[1].upper(), match[2]
    if word in ("QUIT", "EXIT", "CLEAR", "HELP"):
        if rest.strip():
            message = f"{word} stands alone"
            raise SqlSyntaxError(message, at=match.start(2) + len(rest) - len(rest.lstrip()), text=text)
        return Command(word)
    found = (_SOURCE if word == "SOURCE" else _DRAW).match(rest)
    if found is None:
        message = f"this is not how {word} is written"
        raise SqlSyntaxError(message, at=match.start(1), text=text, hint=f"write {_FORMS[word]}")
    file = found[1].replace("''", "'")
    if word == "SOURCE":
        return Command(word, file)
    return Command(word, file, found[2], match.start(2) + found.start(2))
