"""Tables from and to DataFrames of Spark.

Promises: rows move between Spark's tasks and the tasks of jobs through files, as columns; none of them passes the
driver. A type is mapped exactly, or the DataFrame or table is refused.
Does not know: pyspark; it calls the methods of the DataFrame and the session that the user gives."""

from __future__ import annotations

import atexit
import json
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from millstream.connectors.arrow import ArrowFilesSource
from millstream.engine.interpreter import use_own_interpreter
from millstream.errors import InvalidArgument, InvalidArgumentType
from millstream.files.locations import absolute_location, join_path
from millstream.files.remote import get_file_system
from millstream.sql.arrow_exchange import import_column
from millstream.sql.columns import arrow_type, create_row_type_info
from millstream.sql.functions.spark import get_spark_type
from millstream.sql.types import data_types as t

_REPORT = "path string, row_count bigint"
_MICROSECOND_DIGITS = 6
_SIMPLE: dict[str, t.DataType] = {
    "boolean": t.BOOLEAN,
    "byte": t.TINYINT,
    "short": t.SMALLINT,
    "integer": t.INT,
    "long": t.BIGINT,
    "float": t.FLOAT,
    "double": t.DOUBLE,
    "string": t.STRING,
    "binary": t.BYTES,
    "date": t.DATE,
    "timestamp": t.LocalZonedTimestampType(_MICROSECOND_DIGITS),
    "timestamp_ntz": t.TimestampType(_MICROSECOND_DIGITS),
}


class UnknownSparkType(InvalidArgumentType):
    """A type of Spark that no SQL type represents."""

    def __init__(self, name: str, spark_type_name: object) -> None:
        super().__init__(
            f"column '{name}' has Spark's type {spark_type_name}, which no SQL type represents exactly",
            hint="cast the column in Spark before",
        )


class NoSparkType(InvalidArgumentType):
    """A SQL type that Spark does not have."""

    def __init__(self, name: str, data_type: t.DataType) -> None:
        super().__init__(
            f"column '{name}' is a {data_type}, which no type of Spark represents exactly",
            hint="cast the column before, for example to TIMESTAMP(6) or STRING",
        )


# ---------------------------------------------------------------------------------------------------------------- types


def read_row_type_of_spark(frame: Any) -> t.RowType:
    """Return the row type of a DataFrame.

    Raises:
        InvalidArgumentType: If it is no DataFrame, is unbounded, or has a type that SQL does not have.

    """
    schema: Any = getattr(frame, "schema", None)
    if not hasattr(frame, "mapInArrow") or not hasattr(schema, "json"):
        message = f"from_spark needs a DataFrame of Spark, not {type(frame).__name__}"
        raise InvalidArgumentType(message, hint="use from_pandas or from_arrow for data of this process")
    if frame.isStreaming:
        message = "from_spark needs a bounded DataFrame, but this one is a stream"
        raise InvalidArgumentType(message, hint="read its source with a connector, such as FileSource or KafkaSource")
    row = _to_sql_type(json.loads(schema.json()), "")
    assert isinstance(row, t.RowType)
    return t.row_of(row.names, row.types, null=False)


def _to_sql_type(spark_type: Any, name: str) -> t.DataType:
    if isinstance(spark_type, str):
        if spark_type in _SIMPLE:
            return _SIMPLE[spark_type]
        if spark_type.startswith("decimal("):
            precision, scale = spark_type.removeprefix("decimal(").removesuffix(")").split(",")
            return t.DecimalType(int(precision), int(scale))
        if spark_type.startswith("string collate"):
            return t.STRING
        raise UnknownSparkType(name, spark_type)
    match spark_type["type"]:
        case "struct":
            fields = [
                (f["name"], _to_sql_type(f["type"], name or f["name"]), f["nullable"]) for f in spark_type["fields"]
            ]
            types = [data_type if nullable else data_type.not_null() for _, data_type, nullable in fields]
            return t.row_of([field_name for field_name, _, _ in fields], types)
        case "array":
            element = _to_sql_type(spark_type["elementType"], name)
            return t.ArrayType(element if spark_type["containsNull"] else element.not_null())
        case "map":
            value = _to_sql_type(spark_type["valueType"], name)
            key = _to_sql_type(spark_type["keyType"], name).not_null()
            return t.MapType(key, value if spark_type["valueContainsNull"] else value.not_null())
    raise UnknownSparkType(name, spark_type["type"])


def create_spark_schema(row: t.RowType) -> str:
    """Return the schema of a row type in Spark's DDL.

    Raises:
        NoSparkType: If Spark does not have the type of a column.

    """
    columns = []
    for field in row.fields:
        spelled = _to_spark_type(field.data_type)
        if spelled is None:
            raise NoSparkType(field.name, field.data_type)
        columns.append(f"{_quote(field.name)} {spelled}{'' if field.data_type.null else ' NOT NULL'}")
    return ", ".join(columns)


def _to_spark_type(data_type: t.DataType) -> str | None:
    match data_type:
        case t.ArrayType():
            element = _to_spark_type(data_type.element)
            return None if element is None else f"ARRAY<{element}>"
        case t.MapType():
            key, value = _to_spark_type(data_type.key), _to_spark_type(data_type.value)
            return None if key is None or value is None else f"MAP<{key}, {value}>"
        case t.RowType():
            fields = [(field.name, _to_spark_type(field.data_type)) for field in data_type.fields]
            if any(spelled is None for _, spelled in fields):
                return None
            return f"STRUCT<{', '.join(f'{_quote(name)}: {spelled}' for name, spelled in fields)}>"
    return get_spark_type(data_type)


def _quote(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


# --------------------------------------------------------------------------------------------------------- directories


def create_directory(path: str | None, session: Any) -> str:
    """Create a directory for the files that Spark and jobs exchange.

    Args:
        path: A new directory that all workers can access; None for a temporary one, which is deleted when the process
            ends.
        session: The session of Spark, whose workers must be on this machine if there is no path.

    Raises:
        InvalidArgument: If the directory has files, or there is no path, and Spark runs on a cluster.

    """
    if path is not None:
        directory = absolute_location(path)
        files = get_file_system(directory)
        if files.list_if_exists(directory):
            message = f"the directory {directory} is not empty"
            raise InvalidArgument(message, hint="give the path of a new directory for each DataFrame")
        files.make_dirs(directory)
        return directory
    master = session.conf.get("spark.master", "")
    if not master.startswith("local"):
        message = f"Spark runs on '{master}', so rows are exchanged through a directory that all workers can access"
        raise InvalidArgument(message, hint="give path=, a directory on shared or object storage")
    directory = tempfile.mkdtemp(prefix="millstream-exchange-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


# ------------------------------------------------------------------------------------------------------------------ in


class PartitionWriter:
    """Writes a partition of a DataFrame to a file, in a task of Spark, and reports its path and number of rows.

    Each attempt of a task has a file of its own; the driver uses those of the attempts that Spark accepted."""

    def __init__(self, directory: str, row: t.RowType) -> None:
        self._directory, self._row = directory, row

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write all batches; yield one row."""
        schema = pa.schema([(str(i), arrow_type(data_type)) for i, data_type in enumerate(self._row.types)])
        attempt = f"{platform.node()}-{os.getpid()}-{time.perf_counter_ns()}"
        path = join_path(self._directory, f"partition-{attempt}.arrow")
        row_count = 0
        with get_file_system(path).writing(path) as stream, pa.ipc.new_file(stream, schema) as writer:
            for batch in batches:
                fields = zip(batch.columns, self._row.fields, strict=True)
                columns = [import_column(column, field.data_type, field.name) for column, field in fields]
                writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
                row_count += batch.num_rows
        yield pa.RecordBatch.from_pydict({"path": [path], "row_count": pa.array([row_count], pa.int64())})


def read_spark(frame: Any, path: str | None) -> tuple[t.RowType, ArrowFilesSource]:
    """Run a DataFrame, whose tasks write their partitions to files; return its row type and a source of the files."""
    row = read_row_type_of_spark(frame)
    directory = create_directory(path, frame.sparkSession)
    use_own_interpreter(frame.sparkSession.sparkContext)
    reports = frame.mapInArrow(PartitionWriter(directory, row), _REPORT).collect()
    files = tuple((report["path"], report["row_count"]) for report in reports if report["row_count"])
    return row, ArrowFilesSource(files, create_row_type_info(row))
