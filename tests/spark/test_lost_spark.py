"""The JVM of a driver dies, hangs or stops its context in the middle of a job, and the job goes on."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The outcomes of all jobs, which run in one other process."""
    program = str(Path(__file__).with_name("losing.py"))
    command = [sys.executable, program, str(tmp_path_factory.mktemp("losing"))]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=290, check=False)
    assert answer.returncode == 0, answer.stderr[-3000:]
    return json.loads(answer.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("accident", "cause"),
    [
        ("killed", "its JVM "),
        ("silent", "its JVM has not answered for 4 s"),
        ("stopped in the JVM", "its context was stopped"),
        ("stopped", "its context was stopped"),
    ],
)
def test_a_job_that_loses_its_spark_continues_with_another_one(outcomes, accident, cause):
    found = outcomes[accident]
    assert (found["status"], found["right"]) == ("FINISHED", True), found
    assert 1 <= found["restarts"] <= 2
    assert any(cause in each for each in found["causes"]), found["causes"]


def test_a_lost_spark_of_the_program_is_an_error_that_says_so(outcomes):
    found = outcomes["not ours"]
    assert found["status"] == "FAILED"
    assert "the program's own Spark is lost and cannot be started again from here" in found["causes"][-1]
    assert "millstream.spark.master" in found["causes"][-1]


def test_a_lost_spark_of_the_program_is_replaced_when_a_master_is_set(outcomes):
    found = outcomes["not ours, with a master"]
    assert (found["status"], found["right"], found["restarts"]) == ("FINISHED", True, 0)


def test_no_process_of_a_lost_spark_is_left(outcomes):
    assert outcomes["left"] == []
