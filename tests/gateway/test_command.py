"""`millstream sql --endpoint` with a gateway."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

MAIN = "import sys; from millstream.cli.main import main; sys.exit(main(sys.argv[1:]))"
SCRIPT = """
CREATE TABLE t (n INT) WITH ('connector' = 'blackhole');
SHOW TABLES;
INSERT INTO t VALUES (1);
SELECT k, SUM(n) AS total FROM (VALUES ('a', 1), ('a', 2)) AS v(k, n) GROUP BY k;
SELECT * FROM missing;
"""


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", MAIN, *words], capture_output=True, text=True, timeout=120, check=False
    )


def test_a_script_that_a_gateway_executes(gateway: Any) -> None:
    done = run("sql", "--endpoint", gateway.address.removeprefix("http://"), "-e", SCRIPT)
    assert done.returncode == 1, done.stderr
    assert "|          t |" in done.stdout
    assert "was submitted" in done.stderr
    changes = [line.split("|")[1:4] for line in done.stdout.splitlines() if line.startswith(("| +", "| -"))]
    assert [[cell.strip() for cell in row] for row in changes] == [["+I", "a", "1"], ["-U", "a", "1"], ["+U", "a", "3"]]
    assert "millstream: there is no table 'missing' (line 1, column 15)" in done.stderr


def test_no_gateway() -> None:
    done = run("sql", "--endpoint", "127.0.0.1:1", "-e", "SHOW TABLES")
    assert done.returncode == 1
    assert "no SQL gateway answers at http://127.0.0.1:1" in done.stderr
