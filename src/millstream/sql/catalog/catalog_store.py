"""The catalog store: the options of catalogs, one file for each, so that catalogs survive the session.

Promises: Flink's options and files: `<name>.yaml` in the directory, with the options as a flat map. Files of Flink are
read. A damaged file is an error that names it. As in Flink, the comment of a catalog is not stored.
Does not know: types of catalogs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from millstream.files.errors import CorruptFile
from millstream.sql.catalog.named_files import NamedFiles, open_file_system
from millstream.sql.errors import SqlValidationError
from millstream.sql_options import CATALOG_STORE_KIND, CATALOG_STORE_PATH

_PLAIN = r"[^\s'\"\[\]{},&*#?|<>=!%@`:-][^:#]*?"
_ENTRY = re.compile(rf"(?P<key>\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*'|{_PLAIN}):\s+(?P<value>\S.*?)\s*")


class DamagedCatalogStore(CorruptFile):
    """A file of the catalog store that does not hold the options of a catalog."""

    hint = "restore the file from a copy, or delete it and create the catalog again"


class FileCatalogStore:
    """The options of catalogs in a directory."""

    def __init__(self, path: str) -> None:
        self._files = NamedFiles(*open_file_system(path), ".yaml")

    def load(self) -> dict[str, dict[str, str]]:
        """Return the options of all stored catalogs by name."""
        return {name: self._parse(name) for name in self._files.names()}

    def save(self, name: str, options: Mapping[str, str]) -> None:
        """Store the options of a catalog."""
        lines = [f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in options.items()]
        self._files.replace(name, "".join(lines).encode())

    def remove(self, name: str) -> None:
        """Remove a catalog from the store, if it is there."""
        if self._files.exists(name):
            self._files.remove(name)

    def _parse(self, name: str) -> dict[str, str]:
        options: dict[str, str] = {}
        try:
            lines = self._files.read(name).decode().splitlines()
            for line in lines:
                if not line.strip() or line.strip() == "---" or line.lstrip().startswith("#"):
                    continue
                entry = _ENTRY.fullmatch(line)
                if entry is None:
                    raise ValueError(line)
                options[_parse_scalar(entry["key"])] = _parse_scalar(entry["value"])
        except ValueError as problem:
            raise DamagedCatalogStore(self._files.path(name), "lines of the form key: value", str(problem)) from problem
        if "type" not in options:
            raise DamagedCatalogStore(self._files.path(name), "the option type of a catalog", "none")
        return options


def _parse_scalar(text: str) -> str:
    if text.startswith('"'):
        return str(json.loads(text))
    if text.startswith("'"):
        if len(text) < 2 or not text.endswith("'"):
            raise ValueError(text)
        return text[1:-1].replace("''", "'")
    if text[0] in "[{|>&*!":
        raise ValueError(text)
    return text


def open_catalog_store(options: Callable[[str], str | None]) -> FileCatalogStore | None:
    """Return the catalog store of a session; None if catalogs are kept in memory."""
    kind = options(CATALOG_STORE_KIND.key) or CATALOG_STORE_KIND.default
    if kind == "generic_in_memory":
        return None
    if kind != "file":
        message = f"option '{CATALOG_STORE_KIND.key}' must be file or generic_in_memory, not '{kind}'"
        raise SqlValidationError(message)
    path = options(CATALOG_STORE_PATH.key)
    if not path:
        message = f"'{CATALOG_STORE_KIND.key}' = 'file' needs the option '{CATALOG_STORE_PATH.key}'"
        raise SqlValidationError(message, hint="set it to a directory")
    return FileCatalogStore(path)
