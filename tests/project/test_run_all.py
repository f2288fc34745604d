"""The runner of all tests: its table of times, and the part that each test belongs to."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

TESTS = Path(__file__).resolve().parents[1]
RUNNER = runpy.run_path(str(TESTS / "run_all.py"))
CONFTEST = runpy.run_path(str(TESTS / "conftest.py"))


def times(tests: int, seconds: float) -> dict[str, float]:
    return {"tests": tests, "seconds": seconds}


def test_the_slowest_folder_is_first_and_the_sum_last() -> None:
    runs = {
        "others": {"unit": times(900, 60.0), "sql": times(400, 100.5)},
        "servers": {"unit": times(5, 90.0), "kafka": times(40, 8.25)},
    }
    header, *rows, last = RUNNER["format_table"](runs).splitlines()
    assert header.split() == ["tests", "in", "others", "servers"]
    assert [row.split()[0] for row in rows] == ["unit", "sql", "kafka"]
    assert rows[0].split() == ["unit", "900", "in", "60.0", "s", "5", "in", "90.0", "s"]
    assert last.split() == ["all", "1300", "in", "160.5", "s", "45", "in", "98.2", "s"]
    assert {len(line) for line in (header, *rows, last)} == {16 + 2 * 24}


def test_a_part_that_wrote_no_times_has_an_empty_column() -> None:
    *_, last = RUNNER["format_table"]({"others": {"unit": times(1, 2.0)}, "faults": {}}).splitlines()
    assert last.split() == ["all", "1", "in", "2.0", "s"]


def test_without_any_times_there_is_no_row() -> None:
    assert [line.split()[0] for line in RUNNER["format_table"]({"others": {}}).splitlines()] == ["tests", "all"]


def item(path: str, *, spark: bool = False) -> Any:
    return SimpleNamespace(path=TESTS / path, get_closest_marker=lambda name: (spark and name == "spark") or None)


@pytest.mark.parametrize(
    ("path", "spark", "part"),
    [
        ("unit/runtime/test_task.py", False, "others"),
        ("unit/runtime/test_task.py", True, "servers"),
        ("kafka/test_sink.py", False, "servers"),
        ("chaos/test_cases.py", True, "faults"),
        ("cluster_real/test_standalone.py", True, "faults"),
        ("simulation/test_crashes.py", False, "faults"),
        ("/elsewhere/test_page.py", False, "others"),
    ],
)
def test_a_test_belongs_to_one_part(path: str, spark: bool, part: str) -> None:
    assert CONFTEST["part_of"](item(path, spark=spark)) == part


def is_passed_over(path: str, part: str | None) -> bool:
    config = SimpleNamespace(getoption=lambda name: part if name == "part" else None)
    return bool(CONFTEST["pytest_ignore_collect"](TESTS / path, config))


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("unit/state/test_backend.py", {"others"}),
        ("savepoints/test_on_spark.py", {"others", "servers"}),  # a file with both would be in both
        ("sql/fuzz/test_fuzz.py", {"others", "servers"}),
        ("spark/test_batch.py", {"servers"}),
        ("kafka/conftest.py", {"others", "faults", "servers"}),  # not a file with tests
        ("chaos", {"others", "faults", "servers"}),
        ("chaos/test_cases.py", {"faults"}),
    ],
)
def test_files_of_other_parts_are_not_imported(path: str, parts: set[str]) -> None:
    assert not is_passed_over(path, None)
    assert {part for part in RUNNER["PARTS"] if not is_passed_over(path, part)} == parts


def test_the_runner_runs_every_part() -> None:
    class Parser:
        """Keeps the choices of options."""

        choices: tuple[str, ...] = ()

        def addoption(self, name: str, choices: tuple[str, ...] = (), **_: Any) -> None:
            self.choices = self.choices or choices

    parser = Parser()
    CONFTEST["pytest_addoption"](parser)
    assert RUNNER["PARTS"] == parser.choices
