"""A custom source: the rows of a SQLite table, which can be replayed by their ids."""

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

from millstream.common import Types, WatermarkStrategy
from millstream.connector.source import Budget, Records, Source, SourceReader, SplitEnumerator, SplitRange
from millstream.datastream import StreamExecutionEnvironment


class Ids(SplitEnumerator):
    """Runs on the driver, and plans which ids an epoch reads. Its snapshot is stored in every checkpoint."""

    def __init__(self, last: int, done: int) -> None:
        self.last, self.done = last, done

    def plan(self, budget: Budget) -> list[SplitRange]:
        start, self.done = self.done, min(self.last, self.done + budget.records)
        return [SplitRange("table", start, self.done, self.done - start)]

    def snapshot(self) -> int:
        return self.done

    def skip(self, done: SplitRange) -> None:
        self.done = done.end

    def finished(self) -> bool:
        return self.done >= self.last


@dataclass(frozen=True)
class TableSource(Source, SourceReader):
    """Describes the source. It is also the reader, which runs in a task."""

    path: str

    def create_enumerator(self, parallelism: int, state: int | None = None) -> Ids:
        with closing(sqlite3.connect(self.path)) as database:
            return Ids(database.execute("SELECT max(id) FROM people").fetchone()[0], state or 0)

    def create_reader(self, context) -> SourceReader:
        return self

    def read(self, part: SplitRange) -> Iterator[Records]:
        query = "SELECT id, name FROM people WHERE id > ? AND id <= ? ORDER BY id"
        with closing(sqlite3.connect(self.path)) as database:
            yield Records(database.execute(query, (part.start, part.end)).fetchall())


with tempfile.TemporaryDirectory() as directory, closing(sqlite3.connect(f"{directory}/people.db")) as database:
    database.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)")
    database.executemany("INSERT INTO people (name) VALUES (?)", [("ada",), ("bob",), ("eve",)])
    database.commit()
    env = StreamExecutionEnvironment.get_execution_environment()
    people = env.from_source(TableSource(f"{directory}/people.db"), WatermarkStrategy.no_watermarks(), "people")
    people.map(lambda row: f"{row[1]} has id {row[0]}", Types.STRING()).print()
    env.execute("custom source")
