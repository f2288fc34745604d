"""Real sinks for cases that run in this process: files, Delta, Iceberg, PostgreSQL and Kafka.

Promises: a sink is attached to any stream, and its visible rows are read back as text. The output of a sink that writes
files can be saved and restored; a database and a broker run only while they are needed.
Does not know: faults."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from millstream.common import Row, SimpleStringSchema, Types
from millstream.common.serialization import Encoder
from millstream.connectors.files import FileSink
from millstream.connectors.files.buckets import BucketAssigner
from millstream.connectors.lakehouse.iceberg_catalog import TableLoader
from millstream.datastream.connectors import DeliveryGuarantee
from millstream.datastream.connectors.delta import DeltaSink
from millstream.datastream.connectors.iceberg import IcebergSink
from millstream.datastream.connectors.jdbc import (
    JdbcConnectionOptions,
    JdbcExactlyOnceOptions,
    JdbcExecutionOptions,
    JdbcSink,
)
from millstream.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink
from millstream.datastream.data_stream import DataStream
from millstream.datastream.stream_execution_environment import StreamExecutionEnvironment
from millstream.testing.kafka import KafkaBroker
from millstream.testing.postgres import PostgresServer, postgres_server
from millstream.types.arrow_types import to_python_values

Program = Callable[[StreamExecutionEnvironment], DataStream]

_ROWS = Types.ROW_NAMED(["text"], [Types.STRING()])


class OutputSink(Protocol):
    """A sink, and how its output is read. `in_files`: a copy of the directory is a copy of the output."""

    in_files: bool

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the server that the sink writes to."""
        yield

    def attach(self, stream: DataStream, directory: Path) -> None:
        """Write the rows of a stream, as text, to a directory."""

    def rows(self, directory: Path) -> list[str]:
        """Return the visible rows, sorted."""


class Files(OutputSink):
    """The file sink."""

    in_files = True

    def attach(self, stream: DataStream, directory: Path) -> None:
        """Write to files in one bucket."""
        sink = (
            FileSink.for_row_format(str(directory), Encoder.simple_string_encoder())
            .with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
            .build()
        )
        stream.map(repr, Types.STRING()).uid("as text").sink_to(sink).uid("to files")

    def rows(self, directory: Path) -> list[str]:
        """Return all lines."""
        return sorted(line for path in directory.glob("part-*") for line in path.read_text().splitlines())


class Delta(OutputSink):
    """A Delta table, with one commit for each checkpoint."""

    in_files = True

    def attach(self, stream: DataStream, directory: Path) -> None:
        """Write to a table in the directory."""
        sink = DeltaSink.for_row_data(str(directory / "table"), _ROWS).build()
        sink.check()
        stream.map(_as_row, _ROWS).uid("as row").sink_to(sink).uid("to delta")

    def rows(self, directory: Path) -> list[str]:
        """Return the rows of the newest version."""
        from deltalake import DeltaTable

        if not (directory / "table").exists():
            return []
        return _texts(DeltaTable(str(directory / "table")).to_pyarrow_table())


class Iceberg(OutputSink):
    """An Iceberg table with a catalog in SQLite, with one snapshot for each checkpoint."""

    in_files = True

    def attach(self, stream: DataStream, directory: Path) -> None:
        """Write to a table in the directory."""
        sink = IcebergSink.for_row(_loader(directory), _ROWS).create_table_if_missing().build()
        sink.check()
        stream.map(_as_row, _ROWS).uid("as row").sink_to(sink).uid("to iceberg")

    def rows(self, directory: Path) -> list[str]:
        """Return the rows of the newest snapshot."""
        with _loader(directory).open_table() as (_, table):
            return _texts(table.scan().to_arrow())


class Postgres(OutputSink):
    """A table of a PostgreSQL server, written with prepared transactions."""

    in_files = False

    def __init__(self) -> None:
        self._server: PostgresServer | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run a server."""
        with postgres_server() as self._server:
            yield
        self._server = None

    def attach(self, stream: DataStream, directory: Path) -> None:
        """Write to a table with the name of the directory and without a key, so that duplicates are visible."""
        assert self._server is not None
        self._server.execute(f"CREATE TABLE IF NOT EXISTS {_name(directory)} (text text)")
        connection = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(self._server.jdbc_url).build()
        retries = JdbcExecutionOptions.builder().with_max_retries(0).build()
        sink = JdbcSink.exactly_once_sink(
            f"INSERT INTO {_name(directory)} (text) VALUES (?)", _ROWS, connection, retries, JdbcExactlyOnceOptions()
        )
        stream.map(_as_row, _ROWS).uid("as row").sink_to(sink).uid("to postgres")

    def rows(self, directory: Path) -> list[str]:
        """Return the rows of the table."""
        assert self._server is not None
        return sorted(text for (text,) in self._server.execute(f"SELECT text FROM {_name(directory)}"))


class Kafka(OutputSink):
    """A topic of a Kafka broker, written with transactions."""

    in_files = False

    def __init__(self) -> None:
        self._broker: KafkaBroker | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run a broker."""
        with KafkaBroker() as self._broker:
            yield
        self._broker = None

    def attach(self, stream: DataStream, directory: Path) -> None:
        """Write to a topic with the name of the directory; messages are staged in the directory."""
        assert self._broker is not None
        topic = _name(directory)
        if topic not in self._broker.admin().list_topics(timeout=30).topics:
            times = {"message.timestamp.type": "LogAppendTime"}  # a broker refuses the timestamps of some programs
            self._broker.create_topic(topic, partitions=2, config=times)
        serializer = KafkaRecordSerializationSchema.builder().set_topic(topic)
        serializer.set_value_serialization_schema(SimpleStringSchema())
        builder = KafkaSink.builder().set_bootstrap_servers(self._broker.bootstrap_servers)
        builder.set_record_serializer(serializer.build()).set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        sink = builder.set_transactional_id_prefix(topic).set_staging_directory(str(directory / "staged")).build()
        stream.map(repr, Types.STRING()).uid("as text").sink_to(sink).uid("to kafka")

    def rows(self, directory: Path) -> list[str]:
        """Return the committed messages."""
        assert self._broker is not None
        return sorted(self._broker.values(_name(directory)))


def _name(directory: Path) -> str:
    return "_".join(("chaos", *directory.parts[-2:])).replace("-", "_")


def _loader(directory: Path) -> TableLoader:
    locations = {"uri": f"sqlite:///{directory}/catalog.db", "warehouse": f"file://{directory}/warehouse"}
    return TableLoader.from_catalog("chaos", {"type": "sql", **locations}, "chaos.output")


def _as_row(value: object) -> Row:
    return Row(repr(value))


def _texts(table: Any) -> list[str]:
    return sorted(text for chunk in table.column("text").chunks for text in to_python_values(chunk))


SINKS: Mapping[str, OutputSink] = {
    "files": Files(),
    "delta": Delta(),
    "iceberg": Iceberg(),
    "postgres": Postgres(),
    "kafka": Kafka(),
}


class Output:
    """The output of a sink: in a directory below `root`, or in a table or topic with its name."""

    def __init__(self, sink: str, root: Path) -> None:
        self.sink, self._root = SINKS[sink], root
        self._number = 0
        self.empty()

    def attach_to(self, program: Program) -> Program:
        """Return the program with this sink in addition to its own output."""

        def with_sink(env: StreamExecutionEnvironment) -> DataStream:
            stream = program(env)
            self.sink.attach(stream, self.directory)
            return stream

        return with_sink

    def rows(self) -> list[str]:
        """Return the visible rows, sorted."""
        return self.sink.rows(self.directory)

    def empty(self) -> None:
        """Start with an empty output, under a new name."""
        self._number += 1
        self.directory = self._root / f"output-{self._number}"
        self.directory.mkdir(parents=True)

    def save(self) -> None:
        """Save a copy of the output."""
        shutil.rmtree(self._saved, ignore_errors=True)
        shutil.copytree(self.directory, self._saved)

    def restore_saved(self) -> None:
        """Restore the saved output at its old path, because the files contain paths."""
        shutil.rmtree(self.directory)
        shutil.copytree(self._saved, self.directory)

    @property
    def _saved(self) -> Path:
        return self._root / "saved"
