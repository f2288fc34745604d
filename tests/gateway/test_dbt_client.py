"""The gateway client of dbt-flink-adapter, from PyPI; dbt itself is not installed."""

from __future__ import annotations

from typing import Any

from pypi import install, run_program

PROGRAM = """
import logging, sys, time, types
logger = types.ModuleType("dbt.events")  # the only part of dbt that the client imports
logger.AdapterLogger = logging.getLogger
sys.modules |= {"dbt": types.ModuleType("dbt"), "dbt.events": logger}
from flink.sqlgateway.client import FlinkSqlGatewayClient

def execute(sql):
    operation = FlinkSqlGatewayClient.execute_statement(session, sql, {"parallelism.default": "1"})
    while operation.get_status() not in ("FINISHED", "ERROR"):
        time.sleep(0.05)
    rows, page = [], operation.get_result()
    while True:
        rows += page.rows
        if page.is_end_of_stream:
            return rows
        page = operation.get_result(page.next_result_url)

session = FlinkSqlGatewayClient.create_session("127.0.0.1", int(sys.argv[1]), "dbt")
execute("CREATE TABLE t (n INT) WITH ('connector' = 'datagen', 'number-of-rows' = '3')")
print("TABLES", execute("SHOW TABLES"))
print("ROWS", execute("SELECT 7 AS a, 'text' AS b"))
try:
    execute("SELECT * FROM missing")
except Exception as problem:
    print("ERROR", "there is no table 'missing'" in str(problem))
"""


def test_statements_and_results(gateway: Any) -> None:
    folder = install("dbt-flink-adapter", "1.3.11")
    done = run_program(folder, PROGRAM, gateway.address.rpartition(":")[2])
    assert "TABLES [{'table name': 't'}]" in done.stdout, done.stdout + done.stderr
    assert "ROWS [{'a': 7, 'b': 'text'}]" in done.stdout, done.stdout
    assert "ERROR True" in done.stdout
