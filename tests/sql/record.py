"""Records the results of the real Flink: schemas, changelogs and printed tables of the queries of tests/golden/sql.

    PYTHON_WITH_APACHE_FLINK tests/sql/record.py [topic ...]

Each file has `tables` (columns, rows, perhaps a watermark and a primary key) and `queries`; the recorder runs them in
streaming mode at parallelism 1 with mini-batches off and writes what came out beside each query. A `paced` table brings
a row a second. Expressions of `expressions` are recorded with their type and their value as text."""

import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml
from case_columns import declare_columns
from pyflink.java_gateway import get_gateway
from pyflink.table import EnvironmentSettings, TableEnvironment

HERE = Path(__file__).parent


class Dumper(yaml.SafeDumper):
    """Writes each row on one line, without anchors."""

    def ignore_aliases(self, data):
        return True


Dumper.add_representer(
    list,
    lambda dumper, data: dumper.represent_sequence(
        "tag:yaml.org,2002:seq", data, flow_style=not any(isinstance(x, (dict, list)) for x in data)
    ),
)


def environment(options: dict[str, str]) -> TableEnvironment:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "1")
    env.get_config().set("table.local-time-zone", "UTC")
    for key, value in options.items():
        env.get_config().set(key, value)
    return env


def create_paced_table(env: TableEnvironment, name: str, table: dict[str, Any]) -> None:
    """Create a table that emits one row per second, so that time advances on both sides of a join together."""
    columns = ["`$n` BIGINT"]
    for place, (column, kind) in enumerate(table["columns"].items()):
        whens = " ".join(
            f"WHEN {i} THEN " + ("NULL" if row[place] is None else f"CAST('{row[place]}' AS {kind})")
            for i, row in enumerate(table["rows"], 1)
        )
        columns.append(f"`{column}` AS CASE `$n` {whens} END")
    ((column, expr),) = table["watermark"].items()
    columns.append(f"WATERMARK FOR `{column}` AS {expr}")
    env.execute_sql(
        f"CREATE TEMPORARY TABLE `{name}` ({', '.join(columns)}) WITH ('connector'='datagen', 'rows-per-second'='1', "
        f"'fields.$n.kind'='sequence', 'fields.$n.start'='1', 'fields.$n.end'='{len(table['rows'])}')"
    )


def create_table(env: TableEnvironment, name: str, table: dict[str, Any], folder: Path) -> None:
    if table.get("paced"):
        create_paced_table(env, name, table)
        return
    path = folder / f"{name}.csv"
    path.write_text("".join(",".join("NULL" if c is None else str(c) for c in row) + "\n" for row in table["rows"]))
    env.execute_sql(
        f"CREATE TEMPORARY TABLE `{name}` ({declare_columns(table)}) WITH ('connector'='filesystem', 'path'='{path}', "
        "'format'='csv', 'csv.null-literal'='NULL')"
    )


def run_query(env: TableEnvironment, sql: str) -> dict[str, Any]:
    """Return the schema and the changelog of a query, with each value cast to a string by Flink."""
    table = env.sql_query(sql)
    fields = table.get_resolved_schema()
    names, types = fields.get_column_names(), [str(t) for t in table._j_table.getResolvedSchema().getColumnDataTypes()]
    rows = []
    result = env._j_tenv.executeSql(sql)
    iterator = result.collectInternal()
    converter = result.getRowDataToStringConverter()
    while iterator.hasNext():
        row = iterator.next()
        rows.append([row.getRowKind().shortString(), *list(converter.convert(row))])
    iterator.close()
    return {"names": list(names), "types": types, "changelog": rows}


def record(path: Path) -> None:
    content = yaml.safe_load(path.read_text())
    with tempfile.TemporaryDirectory() as folder:
        env = environment(dict(content.get("options", {})))
        for name, table in content.get("tables", {}).items():
            create_table(env, name, table, Path(folder))
        for statement in content.get("statements", []):
            env.execute_sql(statement)
        for query in content.get("queries", []):
            for key in ("names", "types", "changelog", "refused"):
                query.pop(key, None)
            try:
                query.update(run_query(env, query["sql"]))
            except Exception as problem:
                query["refused"] = _find_cause(problem)
        record_expressions(env, content)
        for query in content.get("printed", []):
            try:
                query["lines"] = print_query(env, query["sql"])
            except Exception as problem:
                query["lines"] = [f"refused: {_find_cause(problem)}"]
    path.write_text(yaml.dump(content, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=220))


def print_query(env: TableEnvironment, sql: str) -> list[str]:
    jvm = get_gateway().jvm
    stream = jvm.java.io.ByteArrayOutputStream()
    before = jvm.System.out
    jvm.System.setOut(jvm.java.io.PrintStream(stream))
    try:
        env._j_tenv.executeSql(sql).print()
    finally:
        jvm.System.setOut(before)
    return str(stream.toString()).rstrip("\n").split("\n")


def record_expressions(env: TableEnvironment, content: Any) -> None:
    waiting = [each for each in content.get("expressions", [])]
    for start in range(0, len(waiting), 12):
        chunk = waiting[start : start + 12]
        try:
            _expressions(env, chunk)
        except Exception:
            for each in chunk:
                try:
                    _expressions(env, [each])
                except Exception as problem:
                    for key in ("value", "type"):
                        each.pop(key, None)
                    each["refused"] = _find_cause(problem)


def _expressions(env: TableEnvironment, chunk: list[Any]) -> None:
    items = ", ".join(f"{each['sql']} AS c{i}" for i, each in enumerate(chunk))
    found = run_query(env, f"SELECT {items}")
    (row,) = found["changelog"]
    for each, kind, value in zip(chunk, found["types"], row[1:], strict=True):
        each["type"], each["value"] = kind, value
        each.pop("refused", None)


def _find_cause(problem: BaseException) -> str:
    text = str(getattr(problem, "java_exception", None) or problem)
    found = getattr(problem, "java_exception", None)
    while found is not None and found.getCause() is not None:
        found = found.getCause()
    text = str(found.getMessage()) if found is not None else text
    return text.strip().split("\n")[0][:200]


if __name__ == "__main__":
    arguments = sys.argv[1:]
    golden = HERE.parent / "golden" / "sql"
    for each in sorted([*golden.glob("*.yaml"), *(golden / "late").glob("*.yaml")]):
        topic = str(each.relative_to(golden).with_suffix(""))
        if not arguments or topic in arguments:
            print(topic, flush=True)
            record(each)
