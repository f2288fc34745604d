"""The demo in a process of its own: after two failures, its output equals that of an undisturbed run."""

import io
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from millstream.client.job_progress import Progress, format_bytes, format_watermark
from millstream.client.progress import progress
from millstream.cluster.job_events import CheckpointDone, EpochDone, StatusChanged
from millstream.event_time.watermarks import MAX_WATERMARK, MIN_WATERMARK
from millstream.job.job_status import JobStatus

REPOSITORY = Path(__file__).parent.parent.parent


@pytest.mark.timeout(600)
def test_a_job_that_was_killed_twice_has_the_same_output(tmp_path):
    program = [sys.executable, str(REPOSITORY / "examples" / "fraud_detection.py"), "--demo"]
    arguments = ["--records", "100000", "--rate", "6000", "--out", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
    ran = subprocess.run([*program, *arguments], capture_output=True, text=True, timeout=580, env=environment)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
    assert "Every line is there, none twice" in ran.stdout
    assert re.search(r"killed Python worker \d+", ran.stderr)
    assert "runs it again: no restart of the job" in ran.stderr
    assert re.search(r"restarting from checkpoint \d+: RuntimeError: this function fails once, on purpose", ran.stderr)
    late = [path for path in (tmp_path / "broken" / "late").rglob("*") if path.is_file()]
    assert late, "nothing was late, so lateness was not compared"


def epoch(number: int, records: int, watermark: int = 1_767_225_600_000) -> EpochDone:
    return EpochDone(number, records, 100.0, watermark, 7, 50.0, {"window": {"numLateRecordsDropped": 2}})


def test_rates_are_over_the_last_seconds():
    now = [0.0]
    shown = Progress("job", lambda: now[0])
    for second in range(1, 21):
        now[0] = float(second)
        shown(epoch(second, 1_000))
    assert shown.records == 20_000
    assert 1_000 <= shown.rate() <= 1_200
    now[0] = 60.0
    assert shown.rate() == 0


def test_without_a_terminal_there_is_a_line_each_second_and_for_every_restart():
    now = [0.0]
    console = Console(file=io.StringIO(), record=True, width=500)
    with progress("job", console=console, clock=lambda: now[0]) as listener:
        for _ in range(30):
            now[0] += 0.1
            listener(epoch(1, 10))
        listener(CheckpointDone(4, 30, 2_048, 4_096, 12.0, "chk-4"))
        listener(StatusChanged(JobStatus.RESTARTING, 1, "Traceback\nValueError: bad\nin operator 'map'"))
    lines = console.export_text().splitlines()
    assert "restarting from checkpoint 4: ValueError: bad" in lines[-2]
    assert "restarts 1" in lines[-1]
    assert "2.0 KiB new of 4.0 KiB" in lines[-1]
    assert "60 late" in lines[-1]
    assert len(lines) <= 5


@pytest.mark.parametrize(
    ("watermark", "text"),
    [
        (MIN_WATERMARK, "none yet"),
        (MAX_WATERMARK, "end of input"),
        (1_767_225_600_001, "2026-01-01 00:00:00.001"),
        (10**17, "100000000000000000"),
    ],
)
def test_a_watermark_is_a_time_or_a_word(watermark, text):
    assert format_watermark(watermark) == text


def test_bytes_are_shown_in_the_largest_unit_that_fits():
    assert [format_bytes(n) for n in (0, 1023, 1024, 5 << 20, 3 << 30)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "5.0 MiB",
        "3.0 GiB",
    ]


@pytest.fixture
def demo(monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY / "examples"))
    return runpy.run_path(str(REPOSITORY / "examples" / "fraud_demo.py"))


@pytest.mark.parametrize(
    ("broken", "undisturbed", "why"),
    [
        (["a", "b", "b"], ["a", "b"], "differ in alerts"),
        (["a"], ["a", "b"], "differ in alerts"),
        ([], [], "no lines in alerts"),
    ],
)
def test_the_demo_fails_when_a_line_is_missing_or_twice_or_there_is_none(demo, tmp_path, broken, undisturbed, why):
    for name, lines in (("broken", broken), ("undisturbed", undisturbed)):
        folder = tmp_path / name / "alerts"
        folder.mkdir(parents=True)
        (folder / "part-0").write_text("".join(f"{line}\n" for line in lines))
        (folder / ".staged").write_text("not visible\n")
    plan = demo["Plan"](None, "job", ("alerts",), tmp_path, tmp_path, 1, 1.0)
    with pytest.raises(SystemExit, match=why):
        demo["compare"](plan, Console(file=io.StringIO()))


def test_the_demo_finds_no_process_to_kill_when_it_has_no_spark_of_its_own(demo):
    mine = {os.getpid()}
    parents, _ = demo["processes"]()
    for worker in demo["workers"]():
        line, pid = set(), worker
        while pid in parents:
            pid = parents[pid]
            line.add(pid)
        assert mine & line, f"{worker} is not a process of this test"
