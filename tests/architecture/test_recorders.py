"""Every recorder of golden files is a family of tests/record.py, and every golden file is of a family."""

import runpy

from sources import REPOSITORY

TESTS = REPOSITORY / "tests"
RECORD = runpy.run_path(str(TESTS / "record.py"))
FAMILIES, OF_OLDER_RELEASES = RECORD["FAMILIES"], RECORD["OF_OLDER_RELEASES"]


def test_every_recorder_can_be_run_by_one_command():
    scripts = {path.resolve() for path in TESTS.glob("*/**/record*.py")}
    known = {
        (TESTS / script).resolve() for script in [*(each.script for each in FAMILIES.values()), *OF_OLDER_RELEASES]
    }
    assert scripts <= known
    assert all(path.exists() for path in known)


def test_what_a_recorder_writes_is_there():
    gone = [family.golden for family in FAMILIES.values() if not (TESTS / family.golden).exists()]
    assert not gone


def test_golden_files_are_of_a_family_or_of_an_older_release():
    folders = [TESTS / family.golden for family in FAMILIES.values()]
    folders += [(TESTS / script).parent for script in OF_OLDER_RELEASES]
    golden = [path for path in TESTS.rglob("golden*") if path.suffix != ".pyc" and "__pycache__" not in path.parts]
    assert golden
    unknown = [
        path
        for path in golden
        if not any(path.is_relative_to(folder) or folder.is_relative_to(path) for folder in folders)
    ]
    assert not unknown
