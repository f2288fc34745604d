"""Savepoints of all releases are restored, and the results are those of the uninterrupted job."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from millstream import __version__
from millstream.state_processor import Savepoint

HERE = Path(__file__).parents[1] / "golden" / "savepoints"
RELEASES = sorted(HERE.glob("release-*"))


@pytest.fixture(scope="module")
def record():
    spec = importlib.util.spec_from_file_location("golden_record", HERE / "record.py")
    made = sys.modules["golden_record"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.mark.parametrize("form", ["canonical", "native"])
@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.name)
@pytest.mark.parametrize("parallelism", ["1", "2"])
def test_a_job_continues_from_it(record, release, form, parallelism):
    expected = json.loads((release / "expected.json").read_text(encoding="utf-8"))[form]
    files, named = record.disk()
    feed, rules = record.feeds(*record.PROGRAM.FIRST, *record.PROGRAM.LATER)
    feed.close()
    rules.close()
    settings = {"execution.state-recovery.path": str(release / form), "parallelism.default": parallelism}
    record.start(settings, feed, rules, named).get_job_execution_result().result(30)
    later = record.read_visible_rows(files, "/out")
    assert sorted([*expected["before"], *later]) == expected["all"]
    named.unregister()


@pytest.mark.parametrize("form", ["canonical", "native"])
@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.name)
def test_its_state_is_read(release, form):
    everything = Savepoint(str(release / form)).operator("everything")
    assert everything.state("reduced").entries() == {"ann": 4, "bob": 7, "cid": 4}
    assert everything.state("mapped").entries()["bob"] == {"n2": 2, "n5": 5}
    assert set(everything.state("short").to_pandas()["value"]) == {3, 5, 4}
    assert len(everything.state("large").entries()["ann"]) == 98


def test_this_release_has_one():
    assert HERE / f"release-{__version__}" in RELEASES, "run tests/golden/savepoints/record.py"
