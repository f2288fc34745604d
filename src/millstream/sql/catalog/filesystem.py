"""A catalog in a directory, on any file system: 'type' = 'filesystem'.

Promises: databases, tables and views survive the session, and sessions that use the same directory see each other's
changes. After a crash, a table has its old or its new definition. A damaged file is an error that names it, and other
tables can still be used. Partitions and statistics that are registered in the catalog belong to the session.
Does not know: rows; a dropped table leaves its data where it is.

The directory of a database holds `database.json` and `tables/<name>.json`. A database exists if its `database.json`
does: it is written first, and removed last."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, TypeVar

from millstream.files.contract import FileSystem
from millstream.files.errors import CorruptFile
from millstream.sql.catalog.catalog import Catalog, CatalogObject, Database
from millstream.sql.catalog.external import NoFunctions, check_options
from millstream.sql.catalog.named_files import NamedFiles, encode_name, open_file_system
from millstream.sql.catalog.table_json import from_json, to_json

_VERSION = 1
_DATABASE = "database"

T = TypeVar("T")


class DamagedCatalogFile(CorruptFile):
    """A file of a catalog that cannot be read."""

    hint = "restore the file from a copy, or delete it and create the object again"


def open_filesystem_catalog(name: str, options: Mapping[str, str]) -> Catalog:
    """Open the catalog of a directory, which is created if it does not exist."""
    check_options(name, options, ["path"], ["default-database"])
    file_system, path = open_file_system(options["path"])
    default_database = options.get("default-database", "default")
    return FilesystemCatalog(name, default_database, options, _Databases(file_system, path, default_database))


class FilesystemCatalog(Catalog):
    """A catalog whose databases are directories."""

    def alter_database(self, name: str, options: Mapping[str, str], comment: str | None) -> None:
        """Replace the options and the comment of an existing database."""
        self.databases[name] = Database(comment, options)


class _Databases(MutableMapping[str, Database]):
    """Databases by name. The default database always exists."""

    def __init__(self, file_system: FileSystem, path: str, default: str) -> None:
        self._fs, self._path, self._default = file_system, path, default
        self._opened: dict[str, Database] = {}

    def __getitem__(self, name: str) -> Database:
        files = self._files(name)
        if name == self._default and not files.exists(_DATABASE):
            files.create(_DATABASE, _encode(_database_to_json(Database())))
        content = files.read(_DATABASE)
        options, comment = _decode(files.path(_DATABASE), content, lambda c: (dict(c["options"]), c["comment"]))
        if name not in self._opened:
            tables = NamedFiles(self._fs, f"{self._directory(name)}/tables", ".json")
            self._opened[name] = Database(tables=_Tables(tables), functions=NoFunctions())
        database = self._opened[name]
        database.options, database.comment = options, comment
        return database

    def __setitem__(self, name: str, database: Database) -> None:
        self._files(name).replace(_DATABASE, _encode(_database_to_json(database)))

    def __delitem__(self, name: str) -> None:
        """Remove a database with its tables; after a crash in between it still exists, with fewer tables."""
        database = self[name]
        for table in list(database.tables):
            del database.tables[table]
        self._files(name).remove(_DATABASE)
        self._opened.pop(name, None)
        self._fs.remove_empty_dir(f"{self._directory(name)}/tables")
        self._fs.remove_empty_dir(self._directory(name))

    def __iter__(self) -> Iterator[str]:
        names = NamedFiles(self._fs, self._path, "").names()
        return iter(sorted({self._default, *(name for name in names if self._files(name).exists(_DATABASE))}))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _directory(self, name: str) -> str:
        return f"{self._path}/{encode_name(name)}"

    def _files(self, name: str) -> NamedFiles:
        return NamedFiles(self._fs, self._directory(name), ".json")


class _Tables(MutableMapping[str, CatalogObject]):
    """The tables and views of one database, read from their files at each access."""

    def __init__(self, files: NamedFiles) -> None:
        self._files = files

    def __getitem__(self, name: str) -> CatalogObject:
        return _decode(self._files.path(name), self._files.read(name), from_json)

    def setdefault(self, name: str, definition: CatalogObject) -> CatalogObject:
        """Return the existing table, or create it; if two sessions create a table, one of them gets the table of the
        other."""
        return definition if self._files.create(name, _encode(to_json(name, definition))) else self[name]

    def __setitem__(self, name: str, definition: CatalogObject) -> None:
        self._files.replace(name, _encode(to_json(name, definition)))

    def __delitem__(self, name: str) -> None:
        self._files.remove(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._files.exists(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._files.names())

    def __len__(self) -> int:
        return len(self._files.names())


def _database_to_json(database: Database) -> dict[str, Any]:
    return {"options": database.options, "comment": database.comment}


def _encode(content: dict[str, Any]) -> bytes:
    return json.dumps({"version": _VERSION, **content}, indent=1, ensure_ascii=False).encode()


def _decode(path: str, data: bytes, read: Callable[[dict[str, Any]], T]) -> T:
    try:
        content = json.loads(data)
        version = content["version"]
        if version == _VERSION:
            return read(content)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as problem:
        raise DamagedCatalogFile(path, "a definition in JSON", f"{type(problem).__name__}: {problem}") from problem
    raise DamagedCatalogFile(path, f"version {_VERSION}, the newest that this release reads", f"version {version}")
