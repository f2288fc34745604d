"""How a program that is run with `python job.py` ends: its errors, Ctrl-C, and a forgotten execute()."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAD = """
from millstream.client import local
from millstream.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
"""


def run(tmp_path: Path, program: str) -> tuple[int, str, str]:
    path = tmp_path / "job.py"
    path.write_text(HEAD + program)
    environment = {key: value for key, value in os.environ.items() if key != "PYTEST_CURRENT_TEST"}
    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, timeout=120, check=False, env=environment
    )
    return done.returncode, done.stdout, done.stderr


def test_an_error_of_millstream_names_the_line_of_the_program(tmp_path: Path) -> None:
    code, _, text = run(tmp_path, "env.set_parallelism(0)\n")
    assert code == 1
    assert text == (
        "millstream: a parallelism of 0 is not possible\n"
        f"  at {tmp_path / 'job.py'}, line 5: env.set_parallelism(0)\n"
        "  hint: use an int of at least 1\n"
    )


def test_other_errors_are_printed_as_python_prints_them(tmp_path: Path) -> None:
    code, _, text = run(tmp_path, "env.from_collection([1]).print()\n1 / 0\n")
    assert code == 1
    assert text.startswith("Traceback (most recent call last):\n")
    assert text.endswith("ZeroDivisionError: division by zero\n")  # and no warning about execute()


def test_an_interrupted_job_ends_with_one_line(tmp_path: Path) -> None:
    program = """
def submit(*arguments):
    raise KeyboardInterrupt
local.submit = submit
env.from_collection([1]).print()
env.execute()
"""
    _, _, text = run(tmp_path, program)
    assert text == "millstream: cancelled\n"


@pytest.mark.parametrize(
    ("program", "warning"),
    [
        ("env.from_collection([1]).print()\n", "1 sink was defined, but not run; call env.execute()"),
        ("env.from_collection([1]).print()\nenv.close()\n", ""),
        ("env.from_collection([1]).map(str)\n", ""),
    ],
)
def test_a_forgotten_execute_is_reported_at_the_end(tmp_path: Path, program: str, warning: str) -> None:
    code, out, text = run(tmp_path, program)
    assert (code, out) == (0, "")
    assert text == (f"the program ended without execute(): {warning}\n" if warning else "")
