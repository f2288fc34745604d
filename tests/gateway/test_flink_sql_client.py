"""Flink's SQL client with the gateway: one session, one Java process."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from flink_clients import run_sql_client

SCRIPT = """
SET 'sql-client.execution.result-mode' = 'TABLEAU';
CREATE TABLE words (word STRING, n INT) WITH ('connector' = 'datagen', 'number-of-rows' = '3');
SHOW TABLES;
DESCRIBE words;
SELECT k, SUM(n) AS total FROM (VALUES ('a', 1), ('a', 2)) AS t(k, n) GROUP BY k;
CREATE TABLE sink (word STRING, n INT) WITH ('connector' = 'blackhole');
SET 'table.dml-sync' = 'true';
INSERT INTO sink SELECT * FROM words;
SHOW JOBS;
EXPLAIN SELECT n FROM words;
SELECT * FROM missing;
"""


def test_a_script_of_flinks_sql_client(gateway: Any, tmp_path: Path) -> None:
    output = re.sub(r"\x1b\[[0-9;]*m", "", run_sql_client(gateway.address, SCRIPT, tmp_path))
    assert "|      words |" in output, output
    assert "| word | STRING | TRUE |" in output
    changes = re.findall(r"\| (\+I|-U|\+U|-D) \| +a \| +(\d) \|", output)
    assert changes == [("+I", "1"), ("-U", "1"), ("+U", "3")]
    assert "Received a total of 3 rows" in output
    assert "Complete execution of the SQL update statement" in output
    assert re.search(r"[0-9a-f]{32} \| +insert-into_default_catalog.default_database.sink \| FINISHED", output)
    assert "Optimized Execution Plan" in output
    assert "ValidationException: there is no table 'missing' (line 1, column 15)" in output
