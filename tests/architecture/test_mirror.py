"""tests/unit mirrors src: the test of a module stands in the folder of that module."""

from __future__ import annotations

from pathlib import Path

import pytest
from sources import PACKAGE, REPOSITORY

UNIT = REPOSITORY / "tests" / "unit"
FILES = sorted(path for path in UNIT.rglob("test_*.py") if path.parent != UNIT)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(UNIT).as_posix())
def test_unit_tests_mirror_the_source_folders(path: Path) -> None:
    folder = path.parent.relative_to(UNIT)
    assert (PACKAGE / folder).is_dir(), f"there is no src/millstream/{folder}"
    package = ".".join(("millstream", *folder.parts))
    shared = path.with_name("conftest.py")
    texts = [file.read_text(encoding="utf-8") for file in (path, shared) if file.exists()]
    assert any(package in text for text in texts), f"neither it nor its conftest.py names anything of {package}"
