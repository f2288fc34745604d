"""Programs from packages of Debian, for tests. They are unpacked, not installed: no service is started."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

_SECONDS = 240


def find_program(name: str, package: str) -> str:
    """Return the path of a program: one that is installed, or one from a package, which the user's cache keeps."""
    if path := shutil.which(name):
        return path
    cached = Path.home() / ".cache" / "millstream" / f"debian-{package}"
    if not cached.is_dir() and not _unpack(package, cached):
        pytest.skip(f"there is no {name}: install the package {package}")
    return str(cached / "usr" / "bin" / name)


def _unpack(package: str, into: Path) -> bool:
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        return False
    into.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into.parent, prefix=f".{package}-") as draft:
        if not _run(["apt-get", "download", package], draft) and not (
            os.geteuid() == 0
            and _run(["apt-get", "update", "-qq"], draft)
            and _run(["apt-get", "download", package], draft)
        ):
            return False
        (archive,) = Path(draft).glob("*.deb")
        if not _run(["dpkg-deb", "--extract", str(archive), "unpacked"], draft):
            return False
        try:
            os.rename(Path(draft) / "unpacked", into)
        except OSError:
            return into.is_dir()  # another process has created it meanwhile
    return True


def _run(command: list[str], directory: str) -> bool:
    try:
        return (
            subprocess.run(command, cwd=directory, capture_output=True, timeout=_SECONDS, check=False).returncode == 0
        )
    except subprocess.TimeoutExpired:
        return False
