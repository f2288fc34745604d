"""Tables of cases give PyFlink's output, whatever the parallelism: programs `cases_*`, many small programs in one job.

Each line of their output begins with the name of a case, such as `session/count/reduce`: a window, a trigger and a
function."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import pytest
from test_golden import CASES, run

import record
from millstream.datastream import RuntimeExecutionMode

RECORDED = sorted(path.stem for path in record.AS_BATCH.glob("cases_*.txt"))


@pytest.fixture(autouse=True)
def inline(inline_engine: None) -> None:
    """Run jobs in this process, without Spark."""


def by_case(order: str, lines: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The lines of each case, arranged."""
    cases = defaultdict(list)
    for line in lines:
        cases[record.key_of(line)].append(line)
    return {name: record.arranged(order, case) for name, case in cases.items()}


def assert_same(expected: dict[str, tuple[str, ...]], found: dict[str, tuple[str, ...]]) -> None:
    """Compare case by case, so that a failure names those that differ."""
    different = {
        name: (expected.get(name), found.get(name))
        for name in sorted(expected.keys() | found.keys())
        if expected.get(name) != found.get(name)
    }
    assert not different


@pytest.mark.parametrize("parallelism", [1, 2, 3])
@pytest.mark.parametrize("name", CASES)
def test_cases_give_pyflinks_output(name: str, parallelism: int) -> None:
    golden = record.read_golden(name)
    order = golden.order if parallelism == 1 else "none"
    assert_same(by_case(order, golden.lines), by_case(order, run(name, parallelism)))


@pytest.mark.parametrize("name", RECORDED)
def test_the_batch_gives_what_flinks_batch_gives(name: str) -> None:
    golden = record.read_golden(name, record.AS_BATCH)
    found = run(name, 2, RuntimeExecutionMode.BATCH)
    assert_same(by_case("none", golden.lines), by_case("none", found))


def test_there_are_hundreds_of_cases() -> None:
    lines = [(name, record.key_of(line)) for name in CASES for line in record.read_golden(name).lines]
    cases = {(name, "/".join(key.split("/")[:3])) for name, key in lines}  # lateness adds the key and the window
    assert len(cases) > 300
