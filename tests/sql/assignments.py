"""Which types INSERT converts to which types of a table's columns: what the recorder and the test share."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[1] / "golden" / "sql" / "ends" / "assignments.json"

TYPES = [
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10, 2)", "DECIMAL(3, 0)"),
    *("CHAR(3)", "CHAR(5)", "VARCHAR(3)", "STRING", "BINARY(3)", "BINARY(5)", "VARBINARY(3)", "BYTES"),
    *("DATE", "TIME(0)", "TIMESTAMP(3)", "TIMESTAMP(9)", "TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ(9)"),
    *("VARIANT", "BITMAP"),
    *("ARRAY<INT>", "ARRAY<BIGINT>", "ARRAY<STRING>", "MULTISET<INT>", "MULTISET<BIGINT>"),
    *("MAP<STRING, INT>", "MAP<STRING, BIGINT>", "MAP<INT, INT>"),
    *("ROW<a INT>", "ROW<b BIGINT>", "ROW<a INT, b INT>", "ROW<a ROW<b INT>>", "ROW<a ROW<b TINYINT>>"),
]


def accepted(table_environment: Any, refused: type[Exception] | Callable[[Exception], bool]) -> dict[str, list[str]]:
    """Return, for each type, the types of columns that an INSERT of it is planned for."""
    for number, target in enumerate(TYPES):
        table_environment.execute_sql(f"CREATE TABLE sink_{number} (x {target}) WITH ('connector' = 'blackhole')")
    targets: dict[str, list[str]] = {}
    for source in TYPES:
        targets[source] = []
        for number, target in enumerate(TYPES):
            try:
                table_environment.explain_sql(f"INSERT INTO sink_{number} SELECT CAST(NULL AS {source})")
            except Exception as problem:
                if not (isinstance(problem, refused) if isinstance(refused, type) else refused(problem)):
                    raise
            else:
                targets[source].append(target)
    return targets


def read_golden() -> dict[str, list[str]]:
    """Return what Flink accepts."""
    golden: dict[str, list[str]] = json.loads(GOLDEN.read_text())
    return golden
