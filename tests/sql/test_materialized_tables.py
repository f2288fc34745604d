"""Materialized tables: continuous ones are streaming jobs of the session, full ones are refreshed by a schedule."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millstream.client.clock import system_clock
from millstream.sql.catalog.materialization import Freshness
from millstream.sql.errors import SqlError
from millstream.table import EnvironmentSettings, TableEnvironment
from millstream.table.materialized_tables import MaterializedTables
from millstream.table.refresh_schedule import RefreshSchedule
from millstream.testing.clock import ManualClock

MINUTE = 60_000
SOURCE = "CREATE TABLE source (id INT, ds STRING) WITH ('connector' = 'filesystem', 'path' = '{}', 'format' = 'csv')"


def wait_until(is_reached: Callable[[], bool]) -> None:
    """Wait for a state, for a minute at most."""
    for _ in range(6000):
        if is_reached():
            return
        time.sleep(0.01)
    pytest.fail("the state was not reached within a minute")


class Session:
    """A table environment whose full refreshes run when the test moves the clock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = ManualClock(10 * MINUTE)
        self.schedule = RefreshSchedule(self.clock, start=lambda run: None)
        self.env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        self.env.get_config().set("parallelism.default", "1")
        self.env.get_config().set("execution.checkpointing.savepoint-dir", f"{folder / 'savepoints'}")
        self.env._materialized_tables = MaterializedTables(
            self.env, self.env._open_refresh_session, lambda: self.schedule
        )
        (folder / "source").mkdir()
        self.env.execute_sql(SOURCE.format(folder / "source"))
        self.write("1,a")

    def write(self, *lines: str) -> None:
        count = len(list((self.folder / "source").iterdir()))
        (self.folder / "source" / f"{count}.csv").write_text("".join(f"{line}\n" for line in lines))

    def sink(self, name: str = "m") -> str:
        return f"WITH ('connector' = 'filesystem', 'path' = '{self.folder / name}', 'format' = 'csv')"

    def run(self, statement: str) -> list[tuple[Any, ...]]:
        with self.env.execute_sql(statement).collect() as rows:
            return [tuple(row) for row in rows]

    def content(self, name: str = "m") -> list[str]:
        root = self.folder / name
        files = [path for path in root.rglob("*") if path.is_file()]
        visible = [path for path in files if not any(part[0] in "._" for part in path.relative_to(root).parts)]
        return sorted(line for path in visible for line in path.read_text().splitlines())

    def pass_minutes(self, minutes: int) -> None:
        self.clock.advance(minutes * MINUTE)
        self.schedule.run_due()

    def jobs(self) -> list[str]:
        return [row[2] for row in self.run("SHOW JOBS")]


@pytest.fixture
def session(inline_engine: None, tmp_path: Path) -> Session:
    return Session(tmp_path)


CREATE = "CREATE MATERIALIZED TABLE m {} FRESHNESS = INTERVAL '5' MINUTE REFRESH_MODE = {} AS SELECT id FROM source"


def test_a_full_refresh_runs_at_its_times(session: Session) -> None:
    session.run(CREATE.format(session.sink(), "FULL"))
    assert session.content() == []
    session.pass_minutes(4)
    assert session.content() == []
    session.pass_minutes(1)
    assert session.content() == ["1"]
    session.write("2,b")
    session.pass_minutes(12)  # several times have passed: one refresh
    assert session.content() == ["1", "2"]
    assert session.jobs() == ["FINISHED", "FINISHED"]


def test_a_suspended_table_is_not_refreshed(session: Session) -> None:
    session.run(CREATE.format(session.sink(), "FULL"))
    session.run("ALTER MATERIALIZED TABLE m SUSPEND")
    session.pass_minutes(10)
    assert session.content() == []
    with pytest.raises(SqlError, match="already suspended"):
        session.run("ALTER MATERIALIZED TABLE m SUSPEND")
    session.run("ALTER MATERIALIZED TABLE m RESUME")
    session.pass_minutes(5)
    assert session.content() == ["1"]
    with pytest.raises(SqlError, match="is not suspended"):
        session.run("ALTER MATERIALIZED TABLE m RESUME")
    session.run("DROP MATERIALIZED TABLE m")
    session.write("2,b")
    session.pass_minutes(5)
    assert session.content() == ["1"]


def test_a_refresh_can_be_requested(session: Session) -> None:
    session.run(CREATE.format(session.sink(), "FULL"))
    session.env.execute_sql("ALTER MATERIALIZED TABLE m REFRESH").wait()
    assert session.content() == ["1"]


def test_a_refresh_writes_one_partition(session: Session) -> None:
    session.write("2,b")
    session.run(
        f"CREATE MATERIALIZED TABLE m PARTITIONED BY (ds) {session.sink()} FRESHNESS = INTERVAL '5' MINUTE "
        "REFRESH_MODE = FULL AS SELECT id, ds FROM source"
    )
    session.env.execute_sql("ALTER MATERIALIZED TABLE m REFRESH PARTITION (ds = 'b')").wait()
    assert session.content() == ["2"]
    for partition in ("ds", "id = 1"):
        with pytest.raises(SqlError, match="PARTITION needs values of partition columns"):
            session.run(f"ALTER MATERIALIZED TABLE m REFRESH PARTITION ({partition})")


def test_columns_are_written_by_name(session: Session) -> None:
    session.run(CREATE.format(f"(ds, id) {session.sink()}", "FULL").replace("SELECT id", "SELECT id, ds"))
    session.pass_minutes(5)
    assert session.content() == ["a,1"]


def test_a_time_partition_is_that_of_the_schedule(session: Session) -> None:
    session.write("2,00:15", "3,00:20")
    sink = session.sink().replace(")", ", 'partition.fields.ds.date-formatter' = 'HH:mm')")
    session.run(
        f"CREATE MATERIALIZED TABLE m PARTITIONED BY (ds) {sink} FRESHNESS = INTERVAL '5' MINUTE "
        "REFRESH_MODE = FULL AS SELECT id, ds FROM source"
    )
    session.env.get_config().set_local_timezone("UTC")
    session.pass_minutes(5)
    assert session.content() == ["2"]
    session.pass_minutes(5)
    assert session.content() == ["2", "3"]


def test_a_new_query_adds_columns_at_the_end(session: Session) -> None:
    session.run(CREATE.format(session.sink(), "FULL"))
    session.run("ALTER MATERIALIZED TABLE m AS SELECT id, ds FROM source WHERE id > 0")
    assert [row[:2] for row in session.run("DESCRIBE m")] == [("id", "INT"), ("ds", "STRING")]
    session.pass_minutes(5)
    assert session.content() == ["1,a"]
    session.run("CREATE OR ALTER MATERIALIZED TABLE m AS SELECT id, ds, 'x' AS c FROM source")
    session.pass_minutes(5)
    assert session.content() == ["1,a,x"]
    for query, message in [
        ("SELECT ds FROM source", "column 'id' of type INT is 'ds'"),
        ("SELECT id FROM source", "has no column 'ds'"),
        ("SELECT nothing FROM source", "there is no column 'nothing'"),
    ]:
        with pytest.raises(SqlError, match=message):
            session.run(f"ALTER MATERIALIZED TABLE m AS {query}")
    session.pass_minutes(5)
    assert session.content() == ["1,a,x"]


def test_a_failed_refresh_is_repeated_at_its_next_time(session: Session, caplog: pytest.LogCaptureFixture) -> None:
    session.run(CREATE.format(session.sink(), "FULL").replace("SELECT id", "SELECT 10 / id AS id"))
    session.write("0,b")
    session.pass_minutes(5)
    assert "the refresh of materialized table 'default_catalog.default_database.m' failed" in caplog.text
    assert session.content() == []
    (session.folder / "source" / "1.csv").unlink()
    session.pass_minutes(5)
    assert session.content() == ["10"]


def test_a_continuous_table_is_a_streaming_job(session: Session) -> None:
    session.run("CREATE TABLE numbers (id INT) WITH ('connector' = 'datagen', 'fields.id.kind' = 'sequence', "
                "'fields.id.start' = '1', 'fields.id.end' = '1000000', 'rows-per-second' = '100')")  # fmt: skip
    session.run(
        f"CREATE MATERIALIZED TABLE m {session.sink()} FRESHNESS = INTERVAL '1' SECOND AS SELECT id FROM numbers"
    )
    wait_until(lambda: session.jobs() == ["RUNNING"])
    wait_until(lambda: len(session.content()) > 10)
    session.run("ALTER MATERIALIZED TABLE m SUSPEND")
    stopped = [int(line) for line in session.content()]
    assert session.jobs() == ["FINISHED"]
    session.run("ALTER MATERIALIZED TABLE m RESUME")
    wait_until(lambda: len(session.content()) > len(stopped))
    session.run("DROP MATERIALIZED TABLE m")
    assert session.jobs() == ["FINISHED", "CANCELED"]
    rows = sorted(int(line) for line in session.content())
    assert rows == list(range(1, len(rows) + 1))  # the job continued from its savepoint
    assert session.env.list_materialized_tables() == []


def test_materialized_tables_are_shown(session: Session) -> None:
    session.run(CREATE.format(f"(PRIMARY KEY (id) NOT ENFORCED) COMMENT 'ids' {session.sink()}", "FULL"))
    assert session.run("SHOW MATERIALIZED TABLES LIKE 'm%'") == [("m",)]
    assert session.env.list_materialized_tables() == ["m"]
    expected = (
        "CREATE MATERIALIZED TABLE `default_catalog`.`default_database`.`m` (\n  `id` INT NOT NULL,\n"
        "  CONSTRAINT `PK_id` PRIMARY KEY (`id`) NOT ENFORCED\n)\nCOMMENT 'ids'\nWITH (\n"
        "  'connector' = 'filesystem',\n"
        f"  'format' = 'csv',\n  'path' = '{session.folder / 'm'}'\n)\nFRESHNESS = INTERVAL '5' MINUTE\n"
        "REFRESH_MODE = FULL\nAS SELECT id FROM source\n"
    )
    assert session.run("SHOW CREATE MATERIALIZED TABLE m") == [(expected,)]
    assert session.run("SHOW CREATE OR ALTER MATERIALIZED TABLE m") == [
        (expected.replace("CREATE", "CREATE OR ALTER", 1),)
    ]
    assert session.run("SHOW TABLES") == [("m",), ("source",)]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE MATERIALIZED TABLE source AS SELECT 1 AS a", "there is a table .*source' already"),
        ("CREATE OR ALTER MATERIALIZED TABLE source AS SELECT 1 AS a", "'.*source' is not a materialized table"),
        ("CREATE TEMPORARY MATERIALIZED TABLE x AS SELECT 1 AS a", "cannot be temporary"),
        ("ALTER MATERIALIZED TABLE source SUSPEND", "is not a materialized table"),
        ("ALTER MATERIALIZED TABLE m ADD x INT", "fills cannot be changed"),
        ("ALTER MATERIALIZED TABLE m DROP id", "fills cannot be changed"),
        ("ALTER MATERIALIZED TABLE m RENAME TO source", "there is a table .*source' already"),
        ("ALTER MATERIALIZED TABLE m RENAME TO other_db.n", "cannot be moved"),
        ("CREATE MATERIALIZED TABLE x START_MODE = FROM_NOW AS SELECT 1 AS a", "expected FROM_BEGINNING"),
        ("ALTER TABLE m ADD x INT", "'.*m' is a materialized table"),
        ("DROP TABLE m", "'.*m' is a materialized table"),
        ("CREATE OR REPLACE TABLE m (a INT) WITH ('connector' = 'print')", "'.*m' is a materialized table"),
        ("DROP MATERIALIZED TABLE source", "is not a materialized table"),
        ("CREATE MATERIALIZED TABLE x WITH ('connector' = 'print') REFRESH_MODE = FULL AS SELECT 1 AS a", "OVERWRITE"),
        ("CREATE MATERIALIZED TABLE x FRESHNESS = INTERVAL '5' HOUR AS SELECT 1 AS a", "cannot be scheduled"),
        (
            "CREATE MATERIALIZED TABLE x WITH ('partition.fields.a.date-formatter' = 'HH') AS SELECT 'b' AS a",
            "'a', which is not a partition column",
        ),
    ],
)
def test_an_invalid_statement_is_refused_and_changes_nothing(session: Session, statement: str, message: str) -> None:
    session.run(CREATE.format(session.sink(), "FULL"))
    with pytest.raises(SqlError, match=message):
        session.run(statement)
    assert session.run("SHOW TABLES") == [("m",), ("source",)]
    session.run("DROP MATERIALIZED TABLE IF EXISTS nothing")


def test_computed_columns_are_added_and_the_table_is_renamed(session: Session) -> None:
    session.run(CREATE.format(session.sink(), "FULL").replace(" FRESHNESS", " START_MODE = FROM_BEGINNING FRESHNESS"))
    session.run("ALTER MATERIALIZED TABLE m ADD twice AS id * 2")
    session.run("ALTER MATERIALIZED TABLE m RENAME TO n")
    session.pass_minutes(5)
    assert session.content() == ["1"]
    assert [row[:2] for row in session.run("DESCRIBE n")] == [("id", "INT"), ("twice", "INT")]
    session.run("ALTER MATERIALIZED TABLE n DROP twice")
    assert session.run("SHOW MATERIALIZED TABLES") == [("n",)]


def test_options_are_changed_and_the_schedule_stays(session: Session) -> None:
    session.run(CREATE.format(session.sink(), "FULL"))
    session.run(f"ALTER MATERIALIZED TABLE m SET ('path' = '{session.folder / 'other'}')")
    with pytest.raises(SqlError, match="'connector' cannot be reset"):
        session.run("ALTER MATERIALIZED TABLE m RESET ('connector')")
    session.pass_minutes(5)
    assert session.content() == []
    assert session.content("other") == ["1"]


def test_the_schedule_of_a_dropped_database_ends(session: Session, caplog: pytest.LogCaptureFixture) -> None:
    session.run("CREATE DATABASE d")
    session.run(CREATE.format(session.sink(), "FULL").replace("TABLE m", "TABLE d.m"))
    session.run("DROP DATABASE d CASCADE")
    session.pass_minutes(5)
    assert "failed" not in caplog.text
    assert session.schedule._entries == {}


def test_the_schedule_waits_in_a_thread_of_its_own() -> None:
    times: list[int] = []
    schedule = RefreshSchedule(system_clock())
    schedule.add(("c", "d", "m"), Freshness(1, "SECOND"), "UTC", times.append)
    wait_until(lambda: len(times) > 0)
    schedule.remove(("c", "d", "m"))
    assert times[0] % 1000 == 0
