"""What may come next at the cursor: keywords, tables, columns, functions, options, connectors.

Promises: a pure function of the text and of the names there are; every text has an answer, perhaps an empty one.
Does not know: how candidates are offered, or where names come from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from millstream.cli.shell.script import pieces
from millstream.cli.shell.words import COMMANDS, KEYWORDS, STATEMENTS, TYPES

_WORD = re.compile(r"`?[\w$]*\Z")
_OPTION = re.compile(r"'[^'\n]*\Z")
_NAME = r"(?:`[^`]+`|[^\W\d][\w$]*)"
_PATH = rf"{_NAME}(?:\s*\.\s*{_NAME}){{0,2}}"
_QUALIFIER = re.compile(rf"({_PATH})\s*\.\s*`?[\w$]*\Z")
_WANTS_TABLE = re.compile(r"\b(?:FROM|JOIN|INTO|OVERWRITE|TABLE|VIEW|DESCRIBE|DESC|LIKE|EXTENDED|EXISTS)\s+$", re.I)
_WANTS_KEY = re.compile(r"^\s*(?:SET|RESET)\s+$", re.I)
_WANTS_CONNECTOR = re.compile(r"'connector'\s*=\s*$", re.I)
_READ = re.compile(rf"\b(?:FROM|JOIN|INTO|TABLE|,)\s+({_PATH})(?:\s+(?:AS\s+)?({_NAME}))?", re.I)
_PLAIN = re.compile(r"[^\W\d]\w*\Z")


@dataclass(frozen=True)
class Names:
    """What can be named now: tables with their columns, by every path that leads to them."""

    tables: Mapping[str, Sequence[str]] = field(default_factory=dict)
    functions: Iterable[str] = ()
    options: Iterable[str] = ()
    connectors: Iterable[str] = ()


@dataclass(frozen=True)
class Candidate:
    """A text to put in place of the last `replaces` characters, and what it is."""

    text: str
    replaces: int
    kind: str


def candidates(before: str, after: str, names: Names) -> list[Candidate]:
    """What may stand at the cursor between two texts, the likeliest first."""
    begun = pieces(before)
    statement = before[begun[-1].start :] if begun and not begun[-1].closed else ""
    option = _OPTION.search(statement)
    if option is not None and statement.count("'") % 2:
        return _quoted(option.group(), statement[: option.start()], names)
    word = _WORD.search(statement)
    typed = word.group() if word is not None else ""
    head = statement[: len(statement) - len(typed)]
    if not head.strip():
        return _matching(typed, (("statement", STATEMENTS), ("command", COMMANDS)))
    whole = statement + after.partition(";")[0]
    qualifier = _QUALIFIER.search(statement)
    if qualifier is not None:
        return _qualified(_bare(qualifier.group(1)), typed, _read(whole, names), names)
    if _WANTS_KEY.match(head):
        return _matching(typed, (("option", [f"'{key}'" for key in names.options]),), plain=True)
    if _WANTS_TABLE.search(head):
        return _matching(typed, (("table", _written(names.tables)), ("keyword", KEYWORDS)))
    columns = {column for each in _read(whole, names).values() for column in names.tables[each]}
    groups = (
        ("column", _written(sorted(columns))),
        ("keyword", sorted(KEYWORDS)),
        ("function", [f"{name}(" for name in names.functions]),
        ("type", sorted(TYPES)),
        ("table", _written(names.tables)),
    )
    return _matching(typed, groups)


def _quoted(typed: str, head: str, names: Names) -> list[Candidate]:
    if _WANTS_KEY.match(head):
        return _matching(typed, (("option", [f"'{key}'" for key in names.options]),), plain=True)
    if _WANTS_CONNECTOR.search(head):
        return _matching(typed, (("connector", [f"'{name}'" for name in names.connectors]),), plain=True)
    return []


def _qualified(qualifier: str, typed: str, read: Mapping[str, str], names: Names) -> list[Candidate]:
    table = read.get(qualifier) or (qualifier if qualifier in names.tables else None)
    columns = [] if table is None else _written(names.tables[table])
    inside = [path[len(qualifier) + 1 :] for path in names.tables if path.startswith(f"{qualifier}.")]
    return _matching(typed, (("column", columns), ("table", inside)))


def _read(statement: str, names: Names) -> dict[str, str]:
    """The tables a statement names, by their names and aliases."""
    found: dict[str, str] = {}
    for path, alias in _READ.findall(statement):
        table = _bare(path)
        if table in names.tables:
            found[table] = table
            if alias and alias.upper() not in KEYWORDS:
                found[_bare(alias)] = table
    return found


def _bare(path: str) -> str:
    return re.sub(r"\s*\.\s*", ".", path).replace("`", "")


def _written(found: Iterable[str]) -> list[str]:
    """Names as they must be written."""
    return [".".join(part if _is_plain(part) else _quote(part) for part in each.split(".")) for each in found]


def _quote(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _is_plain(name: str) -> bool:
    return _PLAIN.match(name) is not None and name.upper() not in KEYWORDS


def _matching(typed: str, groups: Sequence[tuple[str, Iterable[str]]], *, plain: bool = False) -> list[Candidate]:
    wanted = typed.strip("'`").lower()
    if not (wanted or plain or any(kind in ("table", "column", "statement", "option") for kind, _ in groups[:1])):
        return []
    lower = typed.islower()
    made: dict[str, Candidate] = {}
    for kind, texts in groups:
        for text in texts:
            if text.strip("'`").lower().startswith(wanted):
                shown = text.lower() if lower and kind in ("keyword", "type", "statement", "command") else text
                made.setdefault(shown, Candidate(shown, len(typed), kind))
    return list(made.values())
