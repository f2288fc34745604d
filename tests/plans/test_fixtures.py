"""Each rewrite rule and each physical decision on a separate query: the plan before and the plan after, as text.

`python tests/plans/record.py` writes the texts again."""

from __future__ import annotations

from pathlib import Path

import pytest
from plan_fixtures import PHYSICAL_FILES, RULE_FILES, load, plan_physical, plan_rule

from millstream.sql.logical.rules import RULES


def test_every_rule_has_a_fixture() -> None:
    assert {load(path)["rule"] for path in RULE_FILES} == {*(rule.__name__ for rule in RULES), "split_distinct"}


@pytest.mark.parametrize("path", RULE_FILES, ids=lambda path: path.stem)
def test_a_rule_rewrites_a_plan(path: Path) -> None:
    fixture = load(path)
    assert plan_rule(fixture) == (fixture["before"], fixture["after"])
    assert fixture["before"] != fixture["after"], "the rule must have something to do"


@pytest.mark.parametrize("path", PHYSICAL_FILES, ids=lambda path: path.stem)
def test_a_physical_decision(path: Path) -> None:
    fixture = load(path)
    assert plan_physical(fixture) == (fixture["before"], fixture["after"])
    if otherwise := fixture.get("otherwise"):
        assert plan_physical({**fixture, **otherwise})[1] == otherwise["after"]
        assert otherwise["after"] != fixture["after"], "the decision must show"
