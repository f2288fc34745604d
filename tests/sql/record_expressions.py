"""Records types and texts of expressions on columns of all types in the real Flink, for the expressions of the golden
file.

PYTHON_WITH_APACHE_FLINK tests/sql/record_expressions.py"""

from __future__ import annotations

import json

from expression_rows import CHUNK, GOLDEN, ZONE, as_texts, expressions, select, sort_column
from pyflink.table import EnvironmentSettings, TableEnvironment


def record(env: TableEnvironment, chunk: list[str]) -> dict[str, tuple[str, list[str | None]]]:
    table = env.sql_query(select(chunk))
    types = [str(data_type) for data_type in table.get_schema()._j_table_schema.getFieldDataTypes()]
    env.create_temporary_view("expressions", table)
    with env.execute_sql(as_texts("expressions", len(chunk))).collect() as results:
        rows = [list(row) for row in results]
    env.drop_temporary_view("expressions")
    return {sql: (types[n], sort_column(rows, n)) for n, sql in enumerate(chunk)}


if __name__ == "__main__":
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "1").set("table.local-time-zone", ZONE)
    known, content = expressions(), {}
    for start in range(0, len(known), CHUNK):
        content.update(record(env, known[start : start + CHUNK]))
    lines = [f"{json.dumps(sql)}: {json.dumps(actual, ensure_ascii=False)}" for sql, actual in content.items()]
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
