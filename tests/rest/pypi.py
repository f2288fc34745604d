"""Clients from PyPI, for tests that start them in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from millstream.testing.maven import _cache


def install(package: str, version: str) -> Path:
    """Return a folder of the user's cache with a package, without its dependencies; it is installed once."""
    folder = _cache() / f"{package}-{version}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{package}-") as draft:
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"]
            subprocess.run([*command, "--target", f"{draft}/package", f"{package}=={version}"], check=True, timeout=240)
            try:
                os.rename(f"{draft}/package", folder)
            except OSError:
                if not folder.is_dir():  # otherwise another process has created it meanwhile
                    raise
    return folder


def run_program(folder: Path, source: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a program that imports from a folder."""
    return subprocess.run(
        [sys.executable, "-c", source, *arguments],
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
