"""Element types are known to type checkers: mypy reads the examples beside this file."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_type_checker_knows_the_types_of_elements() -> None:
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml")]
    check = subprocess.run(
        [*command, "tests/typing/element_types.py"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=280
    )
    assert check.returncode == 0, check.stdout + check.stderr
