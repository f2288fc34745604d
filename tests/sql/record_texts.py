"""Records the text forms of values in the real Flink: CAST to STRING, the print connector, collected objects, and what
DataStream.print writes for typed records.

PYTHON_WITH_APACHE_FLINK tests/sql/record_texts.py [expressions] [numbers] [streams]"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml
from pyflink.common import Row, Types
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.java_gateway import get_gateway
from pyflink.table import TableEnvironment
from pyflink.table.table_result import CloseableIterator
from pyflink.util.java_utils import to_jarray
from value_texts import EXPRESSIONS, GOLDEN, NUMBER_COLUMNS, NUMBER_EXPRESSIONS, NUMBERS, streams

from record import Dumper, _find_cause, environment, run_query

CHUNK = 40


class CapturedOutput:
    """Captures the standard output of Java."""

    def __enter__(self) -> CapturedOutput:
        self._system = get_gateway().jvm.System
        self._stream = get_gateway().jvm.java.io.ByteArrayOutputStream()
        self._before = self._system.out
        self._system.setOut(get_gateway().jvm.java.io.PrintStream(self._stream, True, "UTF-8"))
        return self

    def __exit__(self, *_problem: object) -> None:
        self._system.setOut(self._before)

    def lines(self) -> dict[int, str]:
        """Return the printed records by the number of their sink; a record may have several lines."""
        printed: dict[int, str] = {}
        for line in str(self._stream.toString("UTF-8")).rstrip("\n").split("\n"):
            number, mark, text = line.partition("> ")
            if mark and number.isdigit():
                printed[int(number)] = text
        return printed


def record_chunk(env: TableEnvironment, chunk: list[str]) -> list[dict[str, Any]]:
    """Record expressions with one job: its row is formatted as the tableau, the print connector and collect() do."""
    jvm = get_gateway().jvm
    result = env._j_tenv.executeSql(f"SELECT {', '.join(f'{sql} AS c{i}' for i, sql in enumerate(chunk))}")
    schema = result.getResolvedSchema()
    rows = result.collectInternal()
    row = rows.next()
    rows.close()
    cells = list(result.getRowDataToStringConverter().convert(row))
    converters = jvm.org.apache.flink.table.data.conversion.DataStructureConverters
    converter = converters.getConverter(schema.toPhysicalRowDataType())
    converter.open(jvm.Thread.currentThread().getContextClassLoader())
    external = converter.toExternal(row)
    data_types = list(schema.getColumnDataTypes())
    rows_of_one = [jvm.org.apache.flink.types.Row.project(external, to_jarray(jvm.int, [i])) for i in range(len(chunk))]
    return [
        {
            "sql": sql,
            "type": str(data_type),
            "cast": cell,
            "printed": str(row_of_one.toString()),
            "collected": format_collected(row_of_one, data_type),
        }
        for sql, data_type, cell, row_of_one in zip(chunk, data_types, cells, rows_of_one, strict=True)
    ]


def format_collected(row: Any, data_type: Any) -> str | None:
    """Return the text of the only value of a row as collect() returns it; None where PyFlink fails."""
    jvm = get_gateway().jvm
    iterator = jvm.java.util.Collections.singletonList(row).iterator()
    try:
        ((value,),) = list(
            CloseableIterator(iterator, to_jarray(jvm.org.apache.flink.table.types.DataType, [data_type]))
        )
    except Exception:
        return None
    return repr(value)


def record_some(env: TableEnvironment, chunk: list[str]) -> list[dict[str, Any]]:
    """Record expressions; if one of them is refused, record the two halves separately."""
    try:
        return record_chunk(env, chunk)
    except Exception as problem:
        if len(chunk) == 1:
            print(chunk[0], _find_cause(problem), flush=True)
            return [{"sql": chunk[0], "refused": _find_cause(problem)}]
    middle = len(chunk) // 2
    return record_some(env, chunk[:middle]) + record_some(env, chunk[middle:])


def record_streams() -> list[dict[str, Any]]:
    cases = streams(Types, Row)
    return [case for start in range(0, len(cases), 8) for case in record_records(cases[start : start + 8])]


def record_records(cases: list[tuple[str, Any, Any]]) -> list[dict[str, Any]]:
    """Record typed records with one job; if PyFlink fails for one of them, record the two halves separately."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    for i, (_, type_info, value) in enumerate(cases):
        env.from_collection([0]).map(lambda _, value=value: value, type_info).print(str(i))
    try:
        with CapturedOutput() as captured:
            env.execute()
    except Exception as problem:
        if len(cases) == 1:
            return [{"record": cases[0][0], "refused": _find_cause(problem)}]
        middle = len(cases) // 2
        return record_records(cases[:middle]) + record_records(cases[middle:])
    printed = captured.lines()
    return [{"record": description, "printed": printed.get(i)} for i, (description, _, _) in enumerate(cases)]


def record_expressions() -> list[dict[str, Any]]:
    env = environment({})
    starts = range(0, len(EXPRESSIONS), CHUNK)
    return [case for start in starts for case in record_some(env, EXPRESSIONS[start : start + CHUNK])]


def record_numbers() -> list[dict[str, Any]]:
    """Record operations on the columns of a table, one value for each row."""
    env = environment({})
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "numbers.csv").write_text("".join(f"{line}\n" for line in NUMBERS))
        options = f"'connector' = 'filesystem', 'path' = '{folder}/numbers.csv', 'format' = 'csv'"
        env.execute_sql(f"CREATE TEMPORARY TABLE numbers ({NUMBER_COLUMNS}) WITH ({options})")
        middle = len(NUMBER_EXPRESSIONS) // 2
        return [
            case
            for chunk in (NUMBER_EXPRESSIONS[:middle], NUMBER_EXPRESSIONS[middle:])
            for case in record_operations(env, chunk)
        ]


def record_operations(env: TableEnvironment, chunk: list[str]) -> list[dict[str, Any]]:
    items = ", ".join(f"{sql} AS c{i}" for i, sql in enumerate(chunk))
    try:
        answer = run_query(env, f"SELECT {items} FROM numbers")
    except Exception as problem:
        if len(chunk) == 1:
            return [{"sql": chunk[0], "refused": _find_cause(problem)}]
        middle = len(chunk) // 2
        return record_operations(env, chunk[:middle]) + record_operations(env, chunk[middle:])
    return [
        {"sql": sql, "type": answer["types"][i], "cast": [row[i + 1] for row in answer["changelog"]]}
        for i, sql in enumerate(chunk)
    ]


if __name__ == "__main__":
    content = yaml.safe_load(GOLDEN.read_text()) if GOLDEN.exists() else {}
    for part, recorder in {
        "expressions": record_expressions,
        "numbers": record_numbers,
        "streams": record_streams,
    }.items():
        if part in (sys.argv[1:] or [part]):
            content[part] = recorder()
            GOLDEN.write_text(yaml.dump(content, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=220))
