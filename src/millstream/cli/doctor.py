"""`millstream doctor`: can this machine run a program, and if not, what mends it.

Promises: every check ends as ok, warn or fail, and says how to mend what is not ok; a check that crashes is a fail;
nothing is left behind. Exit code 1 when a check failed.
Does not know: jobs."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from millstream.cli.run import setting
from millstream.engine.spark import class_archive
from millstream.engine.spark.java import find_java
from millstream.errors import MillstreamError
from millstream.options import SPARK_MASTER

if TYPE_CHECKING:
    from argparse import _SubParsersAction

OLDEST_PYTHON = (3, 11)
_GIB = 1 << 30
_PACKAGES = ("pyspark", "pyarrow", "pandas", "numpy", "lmdb", "cloudpickle", "xxhash", "rich")
_SPARK_SECONDS = 180
# In a process of its own: a Spark that hangs or crashes must not take the doctor with it.
_SPARK_PROGRAM = """
import json, sys
from millstream.engine.spark import session
from millstream.errors import MillstreamError
asked = json.load(sys.stdin)  # not the command line, which every user of the machine can read
try:
    context = session.spark_context(asked["settings"], 2)
except MillstreamError as error:
    sys.exit(str(error))
total = context.parallelize(range(10), 2).map(lambda number: number + 1).sum()
assert total == 55, total
found = {key: context.getConf().get(key, "false") for key in asked["show"]}
seen = f"{context.version} on {context.master}, up in {session.start_seconds():.1f} s"
print(json.dumps({"seen": seen, "settings": found}))
session.stop()
"""


#: Spark's settings without which anyone who reaches the network of a cluster can run code on it, or read what it moves.
_PROTECTION = {
    "spark.authenticate": "anyone who reaches its ports can run programs on it",
    "spark.network.crypto.enabled": "records and state cross the network in clear",
}


class Status(Enum):
    """How a check ended."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check saw; `mend` says what to do when it is not ok."""

    check: str
    status: Status
    seen: str
    mend: str = ""


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("doctor", help="check what a program needs: Python, Java, Spark, disk, memory")
    parser.add_argument("--checkpoint-dir", metavar="DIR", help="also check that checkpoints can be written here")
    parser.add_argument("--master", metavar="URL", help="the Spark master to start on (default: this machine)")
    parser.add_argument(
        "-D", dest="define", type=setting, action="append", default=[], metavar="KEY=VALUE", help="an option of Spark"
    )
    parser.add_argument("--spark", action="store_true", help="also start Spark and run a small job")
    parser.add_argument(
        "--archive-classes",
        action="store_true",
        help="keep Spark's classes as Java has read them, which takes a minute once: Spark starts sooner from then on",
    )
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Check everything that was asked for, and print it."""
    findings = examine(
        checkpoint_dir=args.checkpoint_dir,
        master=args.master,
        spark=args.spark,
        archive=args.archive_classes,
        settings=dict(args.define),
    )
    if args.json:
        print(json.dumps([{**asdict(finding), "status": finding.status.value} for finding in findings], indent=2))
    else:
        show(findings, Console(highlight=False, soft_wrap=True))
    return 1 if any(finding.status is Status.FAIL for finding in findings) else 0


def examine(
    *,
    checkpoint_dir: str | None = None,
    master: str | None = None,
    spark: bool = False,
    archive: bool = False,
    settings: Mapping[str, str] | None = None,
) -> list[Finding]:
    """The findings of every check, in the order of what depends on what."""
    checks: list[tuple[str, Callable[[], Finding]]] = [("python", python)]
    checks += [(name, lambda name=name: package(name)) for name in _PACKAGES]  # type: ignore[misc]
    checks += [
        ("java", java),
        ("classes", lambda: classes(archive)),
        ("memory", memory),
        ("disk", lambda: disk(tempfile.gettempdir())),
        ("loopback", loopback),
    ]
    if checkpoint_dir is not None:
        checks.append(("checkpoints", lambda: checkpoints(checkpoint_dir)))
    if spark or master is not None:
        trial = SparkTrial(master, settings or {})
        checks.append(("spark", lambda: spark_starts(trial)))
        if master is not None and not master.startswith("local"):
            checks.append(("network", lambda: network(trial)))
    return [_guarded(name, check) for name, check in checks]


def _guarded(name: str, check: Callable[[], Finding]) -> Finding:
    try:
        return check()
    except MillstreamError as error:
        return Finding(name, Status.FAIL, error.message, error.hint or "")
    except Exception as error:
        return Finding(
            name, Status.FAIL, f"the check itself failed: {type(error).__name__}: {error}", "please report it"
        )


def show(findings: Iterable[Finding], console: Console) -> None:
    """One line a finding, its remedy under it; colours only on a terminal."""
    colours = {Status.OK: "green", Status.WARN: "yellow", Status.FAIL: "red"}
    for finding in findings:
        line = Text.assemble(
            (f"{finding.status.value:<5}", colours[finding.status]), f"{finding.check:<12}", finding.seen
        )
        console.print(line)
        if finding.mend:
            console.print(Text(f"     {'':<12}-> {finding.mend}"))


def python() -> Finding:
    """The Python that runs this."""
    seen = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info[:2] < OLDEST_PYTHON:
        return Finding("python", Status.FAIL, seen, "use Python 3.11, 3.12 or 3.13")
    return Finding("python", Status.OK, seen)


def package(name: str) -> Finding:
    """One package this one depends on: there, and of a version that was asked for."""
    try:
        found = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, Status.FAIL, "not installed", f"pip install {name}")
    if name == "pyspark" and not found.startswith("4.3."):
        return Finding(name, Status.FAIL, found, 'pip install "pyspark==4.3.*"')
    if name == "pandas" and int(found.partition(".")[0]) >= 3:
        return Finding(name, Status.FAIL, found, 'pip install "pandas<3"')
    return Finding(name, Status.OK, found)


def java() -> Finding:
    """The Java that Spark would run on."""
    found = find_java()
    return Finding("java", Status.OK, f"{found.version} ({found.java}, from {found.found_in})")


def classes(archive: bool) -> Finding:
    """The archive that Spark starts from, made if that was asked for."""
    found = find_java()
    kept = class_archive.made(found) if archive else found.archive
    if kept is None or not kept.exists():
        return Finding("classes", Status.OK, "not archived", "millstream doctor --archive-classes: Spark starts sooner")
    return Finding("classes", Status.OK, f"archived ({kept}, {kept.stat().st_size >> 20} MiB)")


def memory() -> Finding:
    """Physical memory: a JVM and two Python workers want some."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    seen = f"{total / _GIB:.1f} GiB"
    if total < 2 * _GIB:
        return Finding("memory", Status.WARN, seen, "2 GiB or more is advised; or set spark.driver.memory lower")
    return Finding("memory", Status.OK, seen)


def disk(path: str) -> Finding:
    """Room for shuffles and local state."""
    free = shutil.disk_usage(path).free
    seen = f"{free / _GIB:.1f} GiB free in {path}"
    if free < _GIB // 4:
        return Finding("disk", Status.FAIL, seen, "free some, or set spark.local.dir and TMPDIR to a larger disk")
    if free < 2 * _GIB:
        return Finding("disk", Status.WARN, seen, "shuffles and local state want 2 GiB or more")
    return Finding("disk", Status.OK, seen)


def loopback() -> Finding:
    """A connection to this machine itself, as Spark's driver makes them."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname(), 5):
            return Finding("loopback", Status.OK, "127.0.0.1 accepts connections")
    except OSError as error:
        return Finding("loopback", Status.FAIL, f"127.0.0.1: {error}", "allow connections on the loopback interface")


def checkpoints(directory: str) -> Finding:
    """Write, sync and rename a file, as publishing a checkpoint does."""
    if "://" in directory and not directory.startswith("file://"):
        return Finding("checkpoints", Status.WARN, f"{directory} is not checked from here", "run a job to check it")
    folder = Path(directory.removeprefix("file://"))
    made = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor, draft = tempfile.mkstemp(dir=folder)
        published = folder / f"{Path(draft).name}.published"
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(b"millstream doctor")
                file.flush()
                os.fsync(file.fileno())
            Path(draft).rename(published)
        finally:
            Path(draft).unlink(missing_ok=True)
            published.unlink(missing_ok=True)
        return Finding("checkpoints", Status.OK, f"{folder} takes a write, a sync and a rename")
    except OSError as error:
        return Finding("checkpoints", Status.FAIL, f"{folder}: {error.strerror}", "choose a directory you may write to")
    finally:
        for parent in made:
            if parent.exists():
                parent.rmdir()


class SparkTrial:
    """Starts Spark as a job would, runs ten numbers through Python workers, and stops it: once, when first asked."""

    def __init__(self, master: str | None, settings: Mapping[str, str]) -> None:
        self._configuration = {**settings, **({} if master is None else {SPARK_MASTER.key: master})}

    @cached_property
    def answer(self) -> subprocess.CompletedProcess[str] | None:
        """What the process said; None if it did not end in time."""
        try:
            return subprocess.run(
                [sys.executable, "-c", _SPARK_PROGRAM],
                input=json.dumps({"settings": self._configuration, "show": list(_PROTECTION)}),
                capture_output=True,
                text=True,
                timeout=_SPARK_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None

    def said(self) -> dict[str, Any] | None:
        """What Spark said of itself; None if it did not start."""
        if self.answer is None or self.answer.returncode != 0:
            return None
        found: dict[str, Any] = json.loads(self.answer.stdout.strip().splitlines()[-1])
        return found


def spark_starts(trial: SparkTrial) -> Finding:
    """Whether Spark starts and runs Python."""
    said = trial.said()
    if said is not None:
        return Finding("spark", Status.OK, said["seen"])
    if trial.answer is None:
        return Finding(
            "spark", Status.FAIL, f"no answer in {_SPARK_SECONDS} s", "is the master reachable, has it free cores?"
        )
    lines = trial.answer.stderr.strip().splitlines()
    reason, _, hint = (lines[-1] if lines else f"exit code {trial.answer.returncode}").partition("; hint: ")
    return Finding("spark", Status.FAIL, reason, hint or "spark.log.level=WARN shows Spark's own log")


def network(trial: SparkTrial) -> Finding:
    """Whether the cluster's network is protected by Spark's own means."""
    said = trial.said()
    if said is None:
        return Finding("network", Status.WARN, "not known: Spark did not start", "mend what the line above says")
    missing = [key for key in _PROTECTION if said["settings"].get(key) != "true"]
    if not missing:
        return Finding("network", Status.OK, "authenticated and encrypted by Spark")
    seen = "; ".join(f"{key} is off: {_PROTECTION[key]}" for key in missing)
    return Finding("network", Status.WARN, seen, "see docs/howto/secure.md, unless the network itself is protected")
