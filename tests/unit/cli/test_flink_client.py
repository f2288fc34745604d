"""`millstream-python`, without Flink: what it takes from the command line that starts it."""

from __future__ import annotations

import pytest

from millstream.cli import flink_client


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-u", "job.py", "--input", "/data"], ("job.py", None, ["--input", "/data"])),
        (["-u", "-m", "jobs.fraud", "-x"], (None, "jobs.fraud", ["-x"])),
    ],
)
def test_what_to_run(words: list[str], expected: object) -> None:
    assert flink_client.parse_command(words) == expected


@pytest.mark.parametrize("words", [[], ["-u"], ["-u", "-m"]])
def test_without_a_program(words: list[str]) -> None:
    with pytest.raises(flink_client.NotStartedByFlink):
        flink_client.parse_command(words)


def test_options_of_the_program_are_sent() -> None:
    settings = {
        "parallelism.default": "4",
        "execution.state-recovery.path": "/savepoints/1",
        "python.files": "file:/data/a%20b/lib.py,/archive.zip#data",
        "execution.attached": "false",
        "execution.target": "remote",
        "pipeline.jars": "file:/flink-python.jar",
        "python.client.executable": "millstream-python",
        "jobmanager.rpc.address": "localhost",
        "rest.port": "8081",
    }
    assert flink_client.select_settings(settings) == {
        "parallelism.default": "4",
        "execution.state-recovery.path": "/savepoints/1",
        "python.files": "/data/a b/lib.py,/archive.zip#data",
    }


def test_not_started_by_flink(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv(flink_client.PORT, raising=False)
    assert flink_client.main() == 1
    assert "flink run -m HOST:PORT -pyclientexec millstream-python" in capsys.readouterr().err
