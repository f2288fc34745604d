"""The runner of all tests: its table of times, and the queue of tests that its processes share."""

from __future__ import annotations

import json
import random
import runpy
import subprocess
import sys
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


def test_a_part_without_times_has_an_empty_column() -> None:
    *_, last = RUNNER["format_table"]({"others": {"unit": times(1, 2.0)}, "faults": {}}).splitlines()
    assert last.split() == ["all", "1", "in", "2.0", "s"]


def test_without_any_times_there_is_no_row() -> None:
    assert [line.split()[0] for line in RUNNER["format_table"]({"others": {}}).splitlines()] == ["tests", "all"]


def item(nodeid: str, *, spark: bool = False) -> Any:
    path = TESTS / nodeid.partition("::")[0]
    return SimpleNamespace(
        path=path, nodeid=nodeid, get_closest_marker=lambda name: (spark and name == "spark") or None
    )


@pytest.mark.parametrize(
    ("nodeid", "spark", "room", "name"),
    [
        ("unit/test_times.py::test_a[1]", False, "unit", "unit/test_times.py"),
        ("sql/fuzz/test_fuzz.py::test_a", True, "spark", "sql/fuzz/test_fuzz.py"),
        ("chaos/test_cases.py::test_a[kafka]", True, "chaos", "chaos/test_cases.py::test_a"),
        ("chaos/test_s3.py::test_a", False, "chaos", "chaos/test_s3.py"),
        ("cluster_real/test_standalone.py::test_a", True, "cluster_real", ""),
        ("/elsewhere/test_page.py::test_a", False, "others", "/elsewhere/test_page.py"),
    ],
)
def test_a_test_belongs_to_one_group(nodeid: str, spark: bool, room: str, name: str) -> None:
    assert CONFTEST["Group"].of(item(nodeid, spark=spark)) == (room, name)


def groups(**rooms: int) -> list[Any]:
    return [CONFTEST["Group"](room, f"{room}-{number}") for room, count in rooms.items() for number in range(count)]


def queues(folder: Path, count: int, work: list[Any]) -> list[Any]:
    return [CONFTEST["WorkQueue"](folder, str(number), work) for number in range(count)]


def test_every_group_is_run_once_in_any_order_of_workers(tmp_path: Path) -> None:
    work = groups(chaos=3, spark=4, sql=5, unit=6, cluster_real=1, kafka=2)
    for seed in range(20):
        (tmp_path / str(seed)).mkdir()
        workers = queues(tmp_path / str(seed), 3, work)
        chance, taken = random.Random(seed), []
        while workers:
            worker = chance.choice(workers)
            if (group := worker.take()) is None:
                workers.remove(worker)
            else:
                taken.append(group)
        assert sorted(taken) == sorted(work), seed


def test_a_worker_stays_in_its_folder_and_helps_when_every_folder_has_a_worker(tmp_path: Path) -> None:
    one, other = queues(tmp_path, 2, groups(unit=2, chaos=3, sql=1))
    assert [one.take().room, other.take().room] == ["chaos", "sql"]  # the slowest are first
    assert [one.take().room, other.take().room] == ["chaos", "unit"]
    assert [one.take().room, one.take().room] == ["chaos", "unit"]
    assert one.take() is other.take() is None


def test_after_spark_tests_a_worker_leaves_some_tests_to_others(tmp_path: Path) -> None:
    one, other = queues(tmp_path, 2, groups(spark=1, unit=1, cluster_real=1, kafka=1))
    assert [one.take().room, one.take().room, one.take()] == ["spark", "kafka", None]
    assert [other.take().room, other.take().room, other.take()] == ["unit", "cluster_real", None]


def result(tests: int, collected: int) -> dict[str, Any]:
    return {"folders": {"unit": times(tests, 1.0)}, "collected": collected, "cpu_seconds": 1.0}


@pytest.mark.parametrize(
    ("results", "problem"),
    [
        ([(2, 9), (3, 9), (3, 9), (1, 9)], None),
        ([(2, 9), (3, 9), (3, 9), (0, 9)], "8 of 9 tests were run"),
        ([(2, 9), (3, 8), (4, 9), (0, 9)], "the processes found different tests: 8, 9"),
        ([(5, 9), (4, 9), (0, 9)], "no results of the fourth process: tests that it took may not have run"),
    ],
)
def test_a_test_that_no_process_ran_is_a_problem(results: list[tuple[int, int]], problem: str | None) -> None:
    found = {name: result(*each) for name, each in zip(RUNNER["WORKERS"], results, strict=False)}
    assert RUNNER["find_problem"](found) == problem


def test_a_process_runs_the_tests_that_it_takes(tmp_path: Path) -> None:
    """Two processes, one after the other: the first takes all there is."""
    chosen = [str(TESTS / "unit" / "test_docs.py"), "-k", "there_are_runnable_blocks"]
    (tmp_path / "queue").mkdir()
    runs = []
    for worker in ("first", "second"):
        times_file = tmp_path / f"{worker}.json"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen]
        command += [f"--queue={tmp_path / 'queue'}", f"--worker={worker}", f"--folder-times={times_file}"]
        subprocess.run(command, check=True, capture_output=True, cwd=TESTS.parent)
        runs.append(json.loads(times_file.read_text()))
    assert [run["collected"] for run in runs] == [1, 1]
    assert [sum(times["tests"] for times in run["folders"].values()) for run in runs] == [1, 0]
