"""Where child processes find `millstream` and `millstream_chaos`.

Promises: drivers, executors and their Python workers import the same code as this process, also where nothing is
installed.
Does not know: what the processes run."""

from __future__ import annotations

import os
from pathlib import Path

import millstream
import millstream_chaos


def source_folders() -> list[str]:
    """Return the folders from which this process imported the two packages."""
    packages = (Path(str(package.__file__)).resolve().parent for package in (millstream, millstream_chaos))
    return list(dict.fromkeys(str(package.parent) for package in packages))


def child_environment() -> dict[str, str]:
    """Return the environment of this process, with the two packages on PYTHONPATH."""
    inherited = os.environ.get("PYTHONPATH")
    folders = [*source_folders(), *([inherited] if inherited else [])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
