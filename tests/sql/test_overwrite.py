"""INSERT OVERWRITE has the resulting files of the real Flink, and a failed job deletes nothing."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from overwrites import GOLDEN, create_filled_environment, read_files

from millstream.connector.sink import WriterContext
from millstream.connectors.files.overwriting import OverwritingSink
from millstream.errors import MillstreamError
from millstream.event_time.watermarks import MAX_WATERMARK
from millstream.sql.catalog.catalog import ColumnDefinition, TableDefinition
from millstream.sql.connector.table_connector import TableContext
from millstream.sql.connectors.registry import find_connector
from millstream.sql.errors import SqlError
from millstream.sql.types.data_types import INT
from millstream.table import EnvironmentSettings, TableEnvironment
from millstream.types.row import Row

CASES = yaml.safe_load(GOLDEN.read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_the_resulting_files_are_those_of_flink(case: dict[str, Any], tmp_path: Path, inline_engine: None) -> None:
    env = create_filled_environment(TableEnvironment, EnvironmentSettings, tmp_path, case.get("mode", "batch"))
    before = read_files(tmp_path)
    if "refused" in case:
        with pytest.raises(SqlError, match="OVERWRITE"):
            env.execute_sql(case["statements"][0])
        assert read_files(tmp_path) == before
        return
    for statement in case["statements"]:
        env.execute_sql(statement).wait()
    assert read_files(tmp_path) == case["files"]


def test_the_api_overwrites_too(tmp_path: Path, inline_engine: None) -> None:
    env = create_filled_environment(TableEnvironment, EnvironmentSettings, tmp_path, "batch")
    env.sql_query("SELECT 40").execute_insert("n", overwrite=True).wait()
    env.create_statement_set().add_insert("p", env.sql_query("SELECT 41, 'a', 1"), overwrite=True).execute().wait()
    files = read_files(tmp_path)
    assert (files["n"], files["p/dt=a/hr=1"], files["p/dt=b/hr=1"]) == (["40"], ["41"], ["3"])


def test_it_cannot_be_compiled(tmp_path: Path) -> None:
    env = create_filled_environment(TableEnvironment, EnvironmentSettings, tmp_path, "batch")
    with pytest.raises(SqlError, match="cannot be compiled"):
        env.compile_plan_sql("INSERT OVERWRITE n VALUES (1)")


def test_a_job_that_fails_replaces_nothing(tmp_path: Path, inline_engine: None) -> None:
    env = create_filled_environment(TableEnvironment, EnvironmentSettings, tmp_path, "batch")
    env.get_config().set("restart-strategy.type", "none")
    before = read_files(tmp_path)
    with pytest.raises(MillstreamError):
        env.execute_sql("INSERT OVERWRITE n SELECT CAST(dt AS INT) FROM p").wait()
    assert read_files(tmp_path) == before


def test_a_repeated_commit_does_not_delete_new_files(tmp_path: Path) -> None:
    (tmp_path / "part-0-1").write_text("1\n")
    definition = TableDefinition(
        (ColumnDefinition("v", INT),), {"connector": "filesystem", "path": str(tmp_path), "format": "csv"}
    )
    context = TableContext(("n",), definition, definition.options, batch=True, overwrite=True)
    write = find_connector(context).write
    assert write is not None
    sink = write(context).sink
    assert isinstance(sink, OverwritingSink)
    writer = sink.create_writer(WriterContext("job", "sink", 0, 1, 1, "0", 0))
    writer.write([Row(2)], None)
    staged = writer.prepare_commit()
    for _ in range(3):  # recovery uses a new committer of the same sink
        committer = sink.create_committer()
        assert committer is not None
        committer.commit(1, staged)
        committer.reached(MAX_WATERMARK, 0)
        assert read_files(tmp_path) == {".": ["2"]}
