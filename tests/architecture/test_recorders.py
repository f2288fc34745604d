"""Every recorder of golden files is a family of tests/record.py."""

import runpy

from sources import REPOSITORY

TESTS = REPOSITORY / "tests"
RECORD = runpy.run_path(str(TESTS / "record.py"))


def test_every_recorder_can_be_run_by_one_command():
    scripts = {path.relative_to(TESTS).as_posix() for path in TESTS.glob("*/**/record*.py")}
    known = {family.script for family in RECORD["FAMILIES"].values()} | set(RECORD["OF_OLDER_RELEASES"])
    assert scripts == known


def test_what_a_recorder_writes_is_there():
    gone = [family.golden for family in RECORD["FAMILIES"].values() if not (TESTS / family.golden).exists()]
    assert not gone
