"""Every recorder of golden files is a family of tests/record.py, and every golden file is below tests/golden."""

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


def test_the_files_of_every_recorder_exist():
    gone = [family.golden for family in FAMILIES.values() if not (TESTS / family.golden).exists()]
    assert not gone


def test_golden_files_belong_to_a_family_or_to_an_older_release():
    recorded = [TESTS / family.golden for family in FAMILIES.values()]
    recorded += [(TESTS / script).parent for script in OF_OLDER_RELEASES]
    golden = [path for path in (TESTS / "golden").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert golden
    unknown = [path for path in golden if not any(path.is_relative_to(place) for place in recorded)]
    assert not unknown


def test_golden_files_are_in_one_tree():
    """Fixtures of plans are not among them: their queries are written by hand, in the same files."""
    golden = [path for path in TESTS.rglob("golden*") if path.suffix not in {".py", ".pyc"}]
    assert golden == [TESTS / "golden"]
    outside = {name for name, family in FAMILIES.items() if not family.golden.startswith("golden/")}
    assert outside == {"plans"}
