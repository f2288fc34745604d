"""The repository holds nothing of the machine it was written on."""

import re
import subprocess
from fnmatch import fnmatch
from pathlib import Path

from sources import REPOSITORY

# Spelled in pieces, so that this file does not break its own rule.
MACHINE = re.compile("|".join(f"/{top}/[A-Za-z.]" for top in ("work", "farm", "root", "home", "Users", "tmp/w")))
LARGEST = 1 << 20


def tracked() -> list[str]:
    """The files of the project: what git knows, or in an archive all but what .gitignore names."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        answer = subprocess.run(listing, cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=True)
        names = answer.stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        names = unpacked(REPOSITORY)
    return [name for name in names if (REPOSITORY / name).is_file()]


def unpacked(folder: Path) -> list[str]:
    """The files below a folder that no line of its .gitignore names."""
    ignored = [line.rstrip("/") for line in (folder / ".gitignore").read_text().split()]
    found = []
    for path in folder.rglob("*"):
        parts = path.relative_to(folder).parts
        if not any(fnmatch(part, pattern) for part in parts for pattern in [".git", *ignored]):
            found.append("/".join(parts))
    return found


def test_the_archive_contains_the_files_that_git_tracks():
    names = {name for name in unpacked(REPOSITORY) if (REPOSITORY / name).is_file()}
    assert names == set(tracked())


def test_no_file_names_a_path_of_this_machine():
    found = []
    for name in tracked():
        text = (REPOSITORY / name).read_text(encoding="utf-8", errors="ignore")
        found += [f"{name}:{number}" for number, line in enumerate(text.splitlines(), 1) if MACHINE.search(line)]
    assert not found


def test_no_file_is_large():
    large = {name: size for name in tracked() if (size := (REPOSITORY / name).stat().st_size) > LARGEST}
    assert not large
