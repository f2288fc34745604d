"""The catalog in a directory: it survives sessions and crashes, and names damaged files."""

import os
import stat
from pathlib import Path

import pytest

from millstream.files.local import LocalFileSystem
from millstream.sql.catalog.catalog import Catalogs
from millstream.sql.catalog.filesystem import DamagedCatalogFile
from millstream.sql.ddl import DdlExecutor
from millstream.sql.errors import CatalogError, SqlNotSupported
from millstream.sql.logical.bind.expressions import Session
from millstream.sql.syntax import parse_statement

TABLE = """CREATE TABLE `a table/..` (
    id INT NOT NULL COMMENT 'the key', name VARCHAR(20), ts TIMESTAMP(3), nested ROW<a INT, b ARRAY<STRING NOT NULL>>,
    twice AS id * 2, source STRING METADATA FROM 'file.name' VIRTUAL,
    WATERMARK FOR ts AS ts - INTERVAL '5' SECOND, CONSTRAINT pk PRIMARY KEY (id) NOT ENFORCED
) COMMENT 'it''s' DISTRIBUTED BY HASH(id) INTO 3 BUCKETS PARTITIONED BY (name)
WITH ('connector' = 'print', 'password' = 'ü')"""


class Sql:
    """A session whose current catalog is that of a directory."""

    def __init__(self, path: Path) -> None:
        self.catalogs = Catalogs()
        self(f"CREATE CATALOG c WITH ('type' = 'filesystem', 'path' = '{path}', 'default-database' = 'main')")
        self("USE CATALOG c")

    def __call__(self, text: str) -> list[str]:
        result = DdlExecutor(Session(self.catalogs), lambda name, function: function).execute(
            parse_statement(text), text
        )
        assert result is not None
        return [row[0] for row in result.rows]


def test_tables_views_and_databases_survive_the_session(tmp_path):
    before = Sql(tmp_path)
    before(TABLE)
    before("CREATE VIEW v COMMENT 'x' AS SELECT id, ts FROM `a table/..`")
    before("CREATE DATABASE `other db` COMMENT 'y' WITH ('a' = 'b')")
    before("ALTER DATABASE `other db` SET ('c' = 'd')")
    before("CREATE TABLE `other db`.t (a INT) WITH ('connector' = 'print')")
    after = Sql(tmp_path)
    assert after.catalogs.table(("a table/..",)) == before.catalogs.table(("a table/..",))
    assert after.catalogs.table(("v",)) == before.catalogs.table(("v",))
    assert after("SHOW DATABASES") == ["main", "other db"]
    assert after("SHOW TABLES") == ["a table/..", "v"]
    database = after.catalogs.database("c", "other db")
    assert (database.comment, database.options) == ("y", {"a": "b", "c": "d"})


def test_sessions_see_changes_of_each_other(tmp_path):
    first, second = Sql(tmp_path), Sql(tmp_path)
    first("CREATE TABLE t (a INT) WITH ('connector' = 'print')")
    with pytest.raises(CatalogError, match=r"there is a table 'c\.main\.t' already"):
        second("CREATE TABLE t (b INT) WITH ('connector' = 'print')")
    second("ALTER TABLE t ADD b INT")
    second("ALTER TABLE t RENAME TO u")
    assert [column.name for column in first.catalogs.table(("u",))[1].columns] == ["a", "b"]
    first("DROP TABLE u")
    assert second("SHOW TABLES") == []


def test_dropping_a_database_drops_its_tables(tmp_path):
    sql = Sql(tmp_path)
    sql("CREATE DATABASE d")
    sql("CREATE TABLE d.t (a INT)")
    sql("DROP DATABASE d CASCADE")
    assert sql("SHOW DATABASES") == ["main"]
    sql("CREATE DATABASE d")
    assert sql("SHOW TABLES FROM d") == []


@pytest.mark.parametrize("content", [b"", b'{"version": 1, "kind": "TABLE"', b'{"version": 1, "kind": "TABLE"}', b"[]"])
def test_a_damaged_file_is_named_and_does_not_hide_other_tables(tmp_path, content):
    sql = Sql(tmp_path)
    sql("CREATE TABLE good (a INT)")
    sql("CREATE TABLE bad (a INT)")
    path = tmp_path / "main" / "tables" / "bad.json"
    path.write_bytes(content)
    with pytest.raises(DamagedCatalogFile, match=str(path)):
        sql("DESCRIBE bad")
    assert sql("SHOW TABLES") == ["bad", "good"]
    assert sql("DESCRIBE good") == ["a"]
    path.unlink()
    assert sql("SHOW TABLES") == ["good"]


def test_a_file_of_a_later_release_is_refused(tmp_path):
    sql = Sql(tmp_path)
    sql("CREATE TABLE t (a INT)")
    path = tmp_path / "main" / "tables" / "t.json"
    path.write_text(path.read_text().replace('"version": 1', '"version": 2'))
    with pytest.raises(DamagedCatalogFile, match="found version 2"):
        sql("DESCRIBE t")


def test_a_crash_before_the_rename_changes_nothing(tmp_path, monkeypatch):
    sql = Sql(tmp_path)
    sql("CREATE TABLE t (a INT)")

    def crash(*paths: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LocalFileSystem, "rename_durably", crash)
        patch.setattr(LocalFileSystem, "move_new_durably", crash)
        for statement in ("ALTER TABLE t ADD b INT", "CREATE TABLE u (a INT)", "CREATE DATABASE d"):
            with pytest.raises(KeyboardInterrupt):
                sql(statement)
    after = Sql(tmp_path)
    assert (after("DESCRIBE t"), after("SHOW TABLES"), after("SHOW DATABASES")) == (["a"], ["t"], ["main"])
    after("CREATE TABLE u (a INT)")
    assert after("SHOW TABLES") == ["t", "u"]


def test_files_can_be_read_by_their_owner_only(tmp_path):
    Sql(tmp_path)("CREATE TABLE t (a INT) WITH ('password' = 'x')")
    mode = os.stat(tmp_path / "main" / "tables" / "t.json").st_mode
    assert stat.S_IMODE(mode) == 0o600


def test_what_cannot_be_stored_is_refused(tmp_path):
    sql = Sql(tmp_path)
    with pytest.raises(SqlNotSupported, match="not functions such as 'f'"):
        sql("CREATE FUNCTION f AS 'math.sqrt' LANGUAGE PYTHON")
    with pytest.raises(CatalogError, match="has an unknown option 'pth'"):
        sql("CREATE CATALOG d WITH ('type' = 'filesystem', 'path' = '/tmp', 'pth' = 'x')")
    with pytest.raises(CatalogError, match="has no option 'path'"):
        sql("CREATE CATALOG d WITH ('type' = 'filesystem')")
