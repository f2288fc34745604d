"""The repository holds nothing of the machine it was written on."""

import re
import subprocess

import pytest
from sources import REPOSITORY

# Spelled in pieces, so that this file does not break its own rule.
MACHINE = re.compile("|".join(f"/{top}/[A-Za-z.]" for top in ("work", "farm", "root", "home", "Users", "tmp/w")))
LARGEST = 1 << 20


def tracked() -> list[str]:
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        answer = subprocess.run(listing, cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout, so there is no list of its files")
    return [name for name in answer.stdout.splitlines() if (REPOSITORY / name).is_file()]


def test_no_file_names_a_path_of_this_machine():
    found = []
    for name in tracked():
        text = (REPOSITORY / name).read_text(encoding="utf-8", errors="ignore")
        found += [f"{name}:{number}" for number, line in enumerate(text.splitlines(), 1) if MACHINE.search(line)]
    assert not found


def test_no_file_is_large():
    large = {name: size for name in tracked() if (size := (REPOSITORY / name).stat().st_size) > LARGEST}
    assert not large
