"""A custom sink: rows into a SQLite table, exactly once, whatever fails in between.

A writer in a task stages rows. After the checkpoint, a committer on the driver makes them visible. Recovery repeats a
commit, so a batch and its name are inserted in one transaction: the second time changes nothing."""

import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from millstream.connector.sink import Committer, Sink, SinkWriter, WriterContext
from millstream.datastream import StreamExecutionEnvironment


class Batch(SinkWriter):
    """Buffers the few rows of an epoch and returns them as a committable, which is stored in the checkpoint."""

    def __init__(self, context: WriterContext) -> None:
        self.name = f"{context.epoch}-{context.subtask}-{context.attempt}"
        self.rows: list[Any] = []

    def write(self, values: Sequence[Any], timestamps: Sequence[int | None] | None) -> None:
        self.rows.extend(values)

    def prepare_commit(self) -> list[Any]:
        return [{"name": self.name, "rows": self.rows}]


@dataclass(frozen=True)
class TableSink(Sink):
    path: str

    def create_writer(self, context: WriterContext) -> SinkWriter:
        return Batch(context)

    def create_committer(self) -> Committer:
        return Insert(self.path)


class Insert(Committer):
    def __init__(self, path: str) -> None:
        self.path = path

    def commit(self, checkpoint: int, committables: Sequence[Any]) -> None:
        with closing(sqlite3.connect(self.path)) as database, database as transaction:
            for batch in committables:
                if transaction.execute("INSERT OR IGNORE INTO batches VALUES (?)", (batch["name"],)).rowcount:
                    transaction.executemany("INSERT INTO squares VALUES (?, ?)", batch["rows"])


with tempfile.TemporaryDirectory() as directory, closing(sqlite3.connect(f"{directory}/squares.db")) as database:
    database.executescript("CREATE TABLE batches (name TEXT PRIMARY KEY); CREATE TABLE squares (number, square);")
    env = StreamExecutionEnvironment.get_execution_environment()
    env.enable_checkpointing(1_000)
    env.from_collection(range(100)).map(lambda n: [n, n * n]).sink_to(TableSink(f"{directory}/squares.db"))
    env.execute("custom sink")
    print(database.execute("SELECT count(*), sum(square) FROM squares").fetchone())
