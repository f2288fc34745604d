"""Compiled plans of all releases are restored from the savepoints of their release, with the results of the
uninterrupted job."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from millstream import __version__
from millstream.table import PlanReference

HERE = Path(__file__).parents[1] / "golden" / "compiled_plans"
RELEASES = sorted(HERE.glob("release-*"))
WAYS = ("rows", "mini-batch")


@pytest.fixture(scope="module")
def record() -> Any:
    spec = importlib.util.spec_from_file_location("golden_sql_record", HERE / "record.py")
    made = sys.modules["golden_sql_record"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def check_restored_job(record: Any, place: Path, parallelism: str, planned: Any) -> None:
    """Check that a job restored from the savepoint ends with the tables of the uninterrupted job."""
    program = record.PROGRAM
    files = program.open_world()
    program.give(program.FIRST)
    program.give(program.LATER)
    program.close()
    settings = {
        "parallelism.default": parallelism,
        "execution.state-recovery.path": str(place / "savepoint"),
        "table.exec.mini-batch.enabled": record.WAYS[place.name],
    }
    env, operations = planned(program, settings)
    record.start(env, operations).get_job_execution_result().result(60)
    expected = json.loads((place / "expected.json").read_text(encoding="utf-8"))
    later = program.changes(files)
    told = {name: [*expected["before"].get(name, ()), *later.get(name, ())] for name in expected["final"]}
    assert json.loads(json.dumps(program.final(told))) == expected["final"]


@pytest.mark.parametrize("parallelism", ["1", "3"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.name)
def test_a_plan_continues_from_its_savepoint(
    record: Any, release: Path, way: str, parallelism: str, tmp_path: Path
) -> None:
    place = record.unpacked(release / f"{way}.tar.xz", tmp_path)

    def planned(program: Any, settings: dict[str, str]) -> Any:
        env = program.environment(settings, tables=False)
        plan = env.load_plan(PlanReference.from_file(str(place / "plan.json")))
        plan._check_state()
        return env, plan._operations

    check_restored_job(record, place, parallelism, planned)


@pytest.mark.parametrize("way", WAYS)
def test_replanned_statements_continue_too(record: Any, way: str, tmp_path: Path) -> None:
    """In the release that wrote them; a later one may plan them in another way, and then the compiled plan goes on."""

    def planned(program: Any, settings: dict[str, str]) -> Any:
        env = program.environment(settings)
        return env, env.compile_plan_sql(program.statement_set())._operations

    place = record.unpacked(HERE / f"release-{__version__}" / f"{way}.tar.xz", tmp_path)
    check_restored_job(record, place, "2", planned)


def test_this_release_has_one() -> None:
    assert HERE / f"release-{__version__}" in RELEASES, "run tests/golden/compiled_plans/record.py"
