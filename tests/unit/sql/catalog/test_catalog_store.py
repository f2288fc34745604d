"""The catalog store: catalogs survive the session, in Flink's files."""

import pytest

from millstream.common import Configuration
from millstream.sql.catalog.catalog_store import DamagedCatalogStore, FileCatalogStore
from millstream.sql.errors import CatalogError, SqlValidationError
from millstream.table import EnvironmentSettings, TableEnvironment


def create_session(path: object, store_kind: str = "file") -> TableEnvironment:
    config = Configuration()
    config.set_string("table.catalog-store.kind", store_kind)
    config.set_string("table.catalog-store.file.path", str(path))
    return TableEnvironment.create(EnvironmentSettings.new_instance().with_configuration(config).build())


def test_catalogs_survive_the_session(tmp_path):
    store, tables = tmp_path / "store", tmp_path / "tables"
    first = create_session(store)
    first.execute_sql(
        f"CREATE CATALOG c WITH ('type' = 'filesystem', 'path' = '{tables}', 'default-database' = 'a: b')"
    )
    first.execute_sql("CREATE CATALOG gone WITH ('type' = 'generic_in_memory')")
    first.execute_sql("CREATE TABLE c.`a: b`.t (a INT)")
    first.execute_sql("ALTER CATALOG c SET ('default-database' = 'd')")
    first.execute_sql("DROP CATALOG gone")
    second = create_session(store)
    assert second.list_catalogs() == ["c", "default_catalog"]
    second.use_catalog("c")
    assert (second.get_current_database(), second.list_databases()) == ("d", ["a: b", "d"])
    second.use_database("a: b")
    assert second.list_tables() == ["t"]


def test_files_are_those_of_flink(tmp_path):
    (tmp_path / "mine.yaml").write_text("type: \"generic_in_memory\"\ndefault-database: 'it''s'\n'k': plain text\n")
    assert FileCatalogStore(str(tmp_path)).load() == {
        "mine": {"type": "generic_in_memory", "default-database": "it's", "k": "plain text"}
    }
    FileCatalogStore(str(tmp_path)).save("../other", {"type": "x", "password": 'a"b: ü\n'})
    assert (tmp_path / "%2E.%2Fother.yaml").read_text() == '"type": "x"\n"password": "a\\"b: ü\\n"\n'
    assert FileCatalogStore(str(tmp_path)).load()["../other"] == {"type": "x", "password": 'a"b: ü\n'}


@pytest.mark.parametrize("content", ["", "type", "type: [1]", 'type: "x', "a: b", "type:\n  x: y", "\xff"])
def test_a_damaged_file_is_named(tmp_path, content):
    path = tmp_path / "c.yaml"
    path.write_text(content, encoding="latin-1")
    with pytest.raises(DamagedCatalogStore, match=str(path)):
        create_session(tmp_path)


def test_wrong_options_are_refused(tmp_path):
    with pytest.raises(SqlValidationError, match="must be file or generic_in_memory, not 'x'"):
        create_session(tmp_path, "x")
    with pytest.raises(SqlValidationError, match=r"needs the option 'table\.catalog-store\.file\.path'"):
        create_session("")


def test_a_refused_change_of_a_catalog_is_not_stored(tmp_path):
    session = create_session(tmp_path / "store")
    session.execute_sql(f"CREATE CATALOG c WITH ('type' = 'filesystem', 'path' = '{tmp_path}')")
    with pytest.raises(CatalogError, match="has no option 'path'"):
        session.execute_sql("ALTER CATALOG c RESET ('path')")
    with pytest.raises(CatalogError, match="the type of catalog 'c' cannot be changed"):
        session.execute_sql("ALTER CATALOG c SET ('type' = 'jdbc')")
    with pytest.raises(CatalogError, match="catalogs of type 'hive' are not supported"):
        session.execute_sql("CREATE CATALOG d WITH ('type' = 'hive')")
    assert create_session(tmp_path / "store").list_catalogs() == ["c", "default_catalog"]
