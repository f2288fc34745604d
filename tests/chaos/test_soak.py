"""The oracle of the case `soak` and its figures."""

import os
from pathlib import Path

import pytest

from millstream.cli.main import main
from millstream.testing import chaos_soak
from millstream.testing.process_usage import directory_usage, process_usage
from millstream.testing.soak_job import Checker, value_of


def _lines(key: int, count: int) -> list[str]:
    total, lines = 0, []
    for number in range(1, count + 1):
        total += value_of(key, number)
        lines.append(f"k{key} {number} {number} {total}")
    return lines


def test_right_output_is_right() -> None:
    checker = Checker()
    for one, other in zip(_lines(1, 5), _lines(2, 5), strict=True):
        checker.check(one)
        checker.check(other)
    assert checker.problems == []
    assert checker.lines == 10


@pytest.mark.parametrize("break_lines", [lambda s: s[:2] + s[3:], lambda s: [*s[:3], *s[2:]], lambda s: s[::-1]])
def test_lost_repeated_and_reordered_records_are_found(break_lines) -> None:
    checker = Checker()
    for line in break_lines(_lines(3, 6)):
        checker.check(line)
    assert checker.problems


def test_state_that_was_lost_is_found() -> None:
    lines = _lines(3, 6)
    lines[4] = f"k3 5 1 {value_of(3, 5)}"
    checker = Checker()
    for line in lines:
        checker.check(line)
    assert len(checker.problems) == 2


def test_a_long_run_that_grows_does_not_hold() -> None:
    trace = chaos_soak.plan(1, "long", minutes=120)
    assert [step["kind"] for step in trace.steps].count("rescale") == 119
    assert [step["kind"] for step in trace.steps].count("kill") == 60
    growing = [float(value) for value in range(1000, 1100)]
    start, middle, end = chaos_soak._thirds(growing)
    assert start < middle < end
    assert end > middle * 1.02


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
