"""Flink's own clients of the gateway, from Maven Central."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from millstream.testing.maven import java, retrieve_cached

VERSION = "2.3.0"
_JAVA = ("-Xshare:auto", "-XX:TieredStopAtLevel=1")


def run_sql_client(address: str, script: str, directory: Path) -> str:
    """Run a script with `sql-client.sh gateway`, and return what it prints."""
    client = retrieve_cached(f"flink-sql-client-{VERSION}", ("org.apache.flink", "flink-sql-client", VERSION))
    gateway = retrieve_cached(
        f"flink-sql-gateway-{VERSION}", ("org.apache.flink", "flink-sql-gateway", VERSION), alone=True
    )
    (directory / "conf").mkdir()
    (directory / "conf" / "config.yaml").write_text("sql-client.execution.result-mode: TABLEAU\n")
    (directory / "script.sql").write_text(script)
    command = [java(), *_JAVA, f"-Duser.home={directory}", "-cp", f"{client}/*:{gateway}/*"]
    command += ["org.apache.flink.table.client.SqlClient", "gateway", "-e", address]
    command += ["-f", str(directory / "script.sql")]
    done = subprocess.run(
        command,
        env=os.environ | {"FLINK_CONF_DIR": str(directory / "conf")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout + done.stderr


def run_jdbc_program(source: str, address: str, directory: Path) -> str:
    """Run a Java program with Flink's JDBC driver; its argument is the URL of the gateway."""
    driver = retrieve_cached(
        f"flink-jdbc-{VERSION}", ("org.apache.flink", "flink-sql-jdbc-driver-bundle", VERSION), alone=True
    )
    logging = retrieve_cached("slf4j-2.0.17", ("org.slf4j", "slf4j-api", "2.0.17"), alone=True)
    (directory / "Main.java").write_text(source)
    command = [java(), *_JAVA, "-cp", f"{driver}/*:{logging}/*", str(directory / "Main.java")]
    command.append(f"jdbc:flink://{address.removeprefix('http://')}")
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.stdout + done.stderr
