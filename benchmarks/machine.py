"""What a run is of: the commit, the versions and the machine.

Promises: changes that are not committed are said.
Does not know: benchmarks."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.environments import PACKAGES

REPOSITORY = Path(__file__).resolve().parent.parent
_OURS = ("pyspark", "pyarrow", "numpy", "duckdb", "confluent-kafka")


def describe() -> dict[str, Any]:
    """Return the commit, versions and machine as plain values."""
    changed = _output("git", "status", "--porcelain", "--untracked-files=no")
    return {
        "started": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": _output("git", "rev-parse", "HEAD") + ("" if not changed else " with changes that are not committed"),
        "versions": {
            "Python": platform.python_version(),
            "Java": _java(),
            **{name: version(name) for name in _OURS},
            **{name: package.partition("==")[2] for name, package in PACKAGES.items()},
        },
        "machine": f"{_processor()}, {os.cpu_count()} cores, {_gibibytes():.0f} GiB, {platform.system()} "
        f"{platform.release()} {platform.machine()}",
        "load": round(os.getloadavg()[0], 1),
    }


def _gibibytes() -> float:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown processor"
    )


def _java() -> str:
    java = shutil.which("java")
    if java is None:
        return "not on PATH"
    said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False).stderr
    return said.splitlines()[0] if said else "unknown"


def _output(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False, cwd=REPOSITORY)
    return done.stdout.strip()
