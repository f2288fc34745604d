"""Records what the real Flink answers: schemas, changelogs and printed tables of the queries of tests/golden/sql.

    PYTHON_WITH_APACHE_FLINK tests/sql/record.py [topic ...]

Each file has `tables` (columns, rows, perhaps a watermark and a primary key) and `queries`; the recorder runs them in
streaming mode at parallelism 1 with mini-batches off and writes what came out beside each query. A `paced` table brings
a row a second. Expressions of `expressions` are recorded with their type and their value as text."""

import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml
from case_columns import declared_columns
from pyflink.java_gateway import get_gateway
from pyflink.table import EnvironmentSettings, TableEnvironment

HERE = Path(__file__).parent


class Dumper(yaml.SafeDumper):
    """Rows on one line each, and no anchors."""

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
    """A table that brings one row a second, so that both sides of a join see its time pass in step."""
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
        f"CREATE TEMPORARY TABLE `{name}` ({declared_columns(table)}) WITH ('connector'='filesystem', 'path'='{path}', "
        "'format'='csv', 'csv.null-literal'='NULL')"
    )


def shown(env: TableEnvironment, sql: str) -> dict[str, Any]:
    """The schema and changelog of a query, each value as Flink casts it to a string."""
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
            for gone in ("names", "types", "changelog", "refused"):
                query.pop(gone, None)
            try:
                query.update(shown(env, query["sql"]))
            except Exception as problem:
                query["refused"] = _cause(problem)
        record_expressions(env, content)
        for query in content.get("printed", []):
            try:
                query["lines"] = printed(env, query["sql"])
            except Exception as problem:
                query["lines"] = [f"refused: {_cause(problem)}"]
    path.write_text(yaml.dump(content, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=220))


def printed(env: TableEnvironment, sql: str) -> list[str]:
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
                    for gone in ("value", "type"):
                        each.pop(gone, None)
                    each["refused"] = _cause(problem)


def _expressions(env: TableEnvironment, chunk: list[Any]) -> None:
    items = ", ".join(f"{each['sql']} AS c{i}" for i, each in enumerate(chunk))
    found = shown(env, f"SELECT {items}")
    (row,) = found["changelog"]
    for each, kind, value in zip(chunk, found["types"], row[1:], strict=True):
        each["type"], each["value"] = kind, value
        each.pop("refused", None)


def _cause(problem: BaseException) -> str:
    text = str(getattr(problem, "java_exception", None) or problem)
    found = getattr(problem, "java_exception", None)
    while found is not None and found.getCause() is not None:
        found = found.getCause()
    text = str(found.getMessage()) if found is not None else text
    return text.strip().split("\n")[0][:200]


if __name__ == "__main__":
    wanted = sys.argv[1:]
    golden = HERE.parent / "golden" / "sql"
    for each in sorted([*golden.glob("*.yaml"), *(golden / "late").glob("*.yaml")]):
        topic = str(each.relative_to(golden).with_suffix(""))
        if not wanted or topic in wanted:
            print(topic, flush=True)
            record(each)
