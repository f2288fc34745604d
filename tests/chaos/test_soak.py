"""The oracle of the case `soak`, and its figures."""

import os
from pathlib import Path

import pytest

from millstream.cli.main import main
from millstream_chaos.cases import soak
from millstream_chaos.jobs.soak_job import Checker, compute_value
from millstream_chaos.machine.process_usage import directory_usage, process_usage


def _lines(key: int, count: int) -> list[str]:
    total, lines = 0, []
    for number in range(1, count + 1):
        total += compute_value(key, number)
        lines.append(f"k{key} {number} {number} {total}")
    return lines


def test_correct_output_is_accepted() -> None:
    checker = Checker()
    for one, other in zip(_lines(1, 5), _lines(2, 5), strict=True):
        checker.check(one)
        checker.check(other)
    assert checker.problems == []
    assert checker.lines == 10


@pytest.mark.parametrize("break_lines", [lambda s: s[:2] + s[3:], lambda s: [*s[:3], *s[2:]], lambda s: s[::-1]])
def test_lost_repeated_and_reordered_records_are_detected(break_lines) -> None:
    checker = Checker()
    for line in break_lines(_lines(3, 6)):
        checker.check(line)
    assert checker.problems


def test_lost_state_is_detected() -> None:
    lines = _lines(3, 6)
    lines[4] = f"k3 5 1 {compute_value(3, 5)}"
    checker = Checker()
    for line in lines:
        checker.check(line)
    assert len(checker.problems) == 2


def test_growth_fails_a_long_run() -> None:
    trace = soak.plan(1, "long", minutes=120)
    assert [step["kind"] for step in trace.steps].count("rescale") == 119
    assert [step["kind"] for step in trace.steps].count("kill") == 60
    growing = [float(value) for value in range(1000, 1100)]
    start, middle, end = soak._levels(growing)
    assert start < middle < end
    assert end > middle * 1.02
    rising_and_falling = [float(100 + number % 7 * 50) for number in range(600)]
    assert len(set(soak._levels(rising_and_falling))) == 1


def test_live_heap_is_read_from_the_log_of_the_collector(tmp_path: Path) -> None:
    log = tmp_path / "gc.log"
    assert soak._read_live_heap(log) == 0
    log.write_text("[1.2s][info][gc] GC(7) Pause Young (Allocation Failure) 165M->66M(365M) 5.196ms\n" * 100)
    with log.open("a") as file:
        file.write("[2.0s][info][gc] GC(8) Pause Full (System.gc()) 120M->61M(365M) 80.1ms\n[2.1s][info][gc] half a li")
    assert soak._read_live_heap(log) == 61


def test_usage_of_a_process_and_of_a_directory(tmp_path: Path) -> None:
    own = process_usage(os.getpid())
    assert own.memory > 1 << 20
    assert own.descriptors > 0
    assert own.threads > 0
    assert process_usage(2**22 + 1).memory == 0
    (tmp_path / "file").write_bytes(b"x" * 100_000)
    assert directory_usage(tmp_path).files == 1
    assert directory_usage(tmp_path).bytes >= 100_000


def test_minutes_are_for_soak_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chaos", "damage", "--minutes", "1"]) == 1
    assert "--minutes is for the case soak" in capsys.readouterr().err
