"""Flink's JDBC driver with the gateway. CI leaves it out: the driver has 40 MB and needs a Java with a compiler."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from flink_clients import run_jdbc_program

MAIN = """
import java.sql.*;

public class Main {
    public static void main(String[] arguments) throws Exception {
        try (Connection connection = DriverManager.getConnection(arguments[0]);
             Statement statement = connection.createStatement()) {
            System.out.println("catalog " + connection.getCatalog());
            statement.execute("CREATE TABLE t (n INT) WITH ('connector' = 'blackhole')");
            statement.execute("SHOW TABLES");
            try (ResultSet tables = statement.getResultSet()) {
                while (tables.next()) System.out.println("table " + tables.getString(1));
            }
            String query = "SELECT 7, CAST(1.50 AS DECIMAL(5, 2)), CAST('12345678901234567890.5' AS DECIMAL(30, 1)), "
                + "TIMESTAMP '2020-01-02 03:04:05.12', DATE '2020-01-02', TRUE, 'text'";
            try (ResultSet rows = statement.executeQuery(query)) {
                while (rows.next())
                    System.out.println("row " + rows.getInt(1) + " " + rows.getBigDecimal(2) + " "
                        + rows.getBigDecimal(3) + " " + rows.getTimestamp(4) + " " + rows.getDate(5) + " "
                        + rows.getBoolean(6) + " " + rows.getString(7));
            }
            try {
                statement.executeQuery("SELECT * FROM missing").next();
            } catch (Exception problem) {
                String text = problem.toString();
                for (Throwable cause = problem; cause != null; cause = cause.getCause()) text += cause.getMessage();
                System.out.println("error " + text.contains("there is no table 'missing'"));
            }
        }
    }
}
"""


@pytest.mark.skipif("MILLSTREAM_JDBC" not in os.environ, reason="set MILLSTREAM_JDBC=1 to download and run the driver")
def test_a_program_with_flinks_jdbc_driver(gateway: Any, tmp_path: Path) -> None:
    output = run_jdbc_program(MAIN, gateway.address, tmp_path)
    assert "catalog default_catalog" in output, output
    assert "table t" in output
    assert "row 7 1.50 12345678901234567890.5 2020-01-02 03:04:05.12 2020-01-02 true text" in output, output
    assert "error true" in output
