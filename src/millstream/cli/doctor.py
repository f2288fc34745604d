"""`millstream doctor`: checks whether this machine can run programs, and says how to fix what is missing.

Promises: every check ends with ok, warn or fail, and names a remedy if it is not ok; a check that raises an exception
fails; no files are left behind. The exit code is 1 if a check failed.
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
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from millstream.cli.run import setting
from millstream.engine.spark import class_archive
from millstream.engine.spark.java import find_java
from millstream.engine.spark.versions import refuse_unsupported
from millstream.errors import MillstreamError
from millstream.options import SPARK_MASTER

if TYPE_CHECKING:
    from argparse import _SubParsersAction

OLDEST_PYTHON = (3, 11)
_GIB = 1 << 30
_PACKAGES = ("pyspark", "pyarrow", "pandas", "numpy", "lmdb", "cloudpickle", "xxhash", "rich")
_SPARK_SECONDS = 180
# It runs in a process of its own, so that a Spark that hangs or crashes does not affect this one.
_SPARK_PROGRAM = """
import json, sys
from millstream.engine.spark import session
from millstream.errors import MillstreamError
asked = json.load(sys.stdin)  # not from the command line, which every user of the machine can read
try:
    context = session.spark_context(asked["settings"], 2)
except MillstreamError as error:
    sys.exit(str(error))
total = context.parallelize(range(10), 2).map(lambda number: number + 1).sum()
assert total == 55, total
settings = {key: context.getConf().get(key, "false") for key in asked["show"]}
seen = f"{context.version} on {context.master}, up in {session.start_seconds():.1f} s"
print(json.dumps({"seen": seen, "settings": settings}))
session.stop()
"""


#: Spark settings that protect a cluster from others on its network, and what happens without them.
_PROTECTION = {
    "spark.authenticate": "anyone who can connect to its ports can run programs on it",
    "spark.network.crypto.enabled": "records and state are sent over the network unencrypted",
}


class Status(Enum):
    """The result of a check."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check observed; `remedy` says what to do if it is not ok."""

    check: str
    status: Status
    observed: str
    remedy: str = ""


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("doctor", help="check what programs need: Python, Java, Spark, disk, memory")
    parser.add_argument(
        "--checkpoint-dir", metavar="DIR", help="also check that checkpoints can be written to this directory"
    )
    parser.add_argument("--master", metavar="URL", help="the Spark master for the test job (default: this machine)")
    parser.add_argument(
        "-D",
        dest="define",
        type=setting,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="set an option of Spark",
    )
    parser.add_argument("--spark", action="store_true", help="also start Spark and run a small job")
    parser.add_argument(
        "--archive-classes",
        action="store_true",
        help="create an archive of Spark's classes (takes about a minute), so that Spark starts faster from then on",
    )
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the checks and print their findings."""
    findings = examine(
        checkpoint_dir=args.checkpoint_dir,
        master=args.master,
        spark=args.spark,
        archive=args.archive_classes,
        settings=dict(args.define),
    )
    if args.json:
        print(json.dumps([_to_json(finding) for finding in findings], indent=2))
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
    """Run the checks in the order of their dependencies, and return their findings."""
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
    return [_run_check(name, check) for name, check in checks]


def _to_json(finding: Finding) -> dict[str, str]:
    return {
        "check": finding.check,
        "status": finding.status.value,
        "seen": finding.observed,
        "mend": finding.remedy,
    }


def _run_check(name: str, check: Callable[[], Finding]) -> Finding:
    try:
        return check()
    except MillstreamError as error:
        return Finding(name, Status.FAIL, error.message, error.hint or "")
    except Exception as error:
        return Finding(
            name, Status.FAIL, f"the check raised {type(error).__name__}: {error}", "this is a bug: please report it"
        )


def show(findings: Iterable[Finding], console: Console) -> None:
    """Print one line for each finding, with its remedy below it; colours only on a terminal."""
    colours = {Status.OK: "green", Status.WARN: "yellow", Status.FAIL: "red"}
    for finding in findings:
        line = Text.assemble(
            (f"{finding.status.value:<5}", colours[finding.status]), f"{finding.check:<12}", finding.observed
        )
        console.print(line)
        if finding.remedy:
            console.print(Text(f"     {'':<12}-> {finding.remedy}"))


def python() -> Finding:
    """Check the version of Python."""
    observed = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info[:2] < OLDEST_PYTHON:
        return Finding("python", Status.FAIL, observed, "use Python 3.11, 3.12 or 3.13")
    return Finding("python", Status.OK, observed)


def package(name: str) -> Finding:
    """Check that a required package is installed in a supported version."""
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, Status.FAIL, "not installed", f"pip install {name}")
    if name == "pyspark":
        refuse_unsupported(version)
    if name == "pandas" and int(version.partition(".")[0]) >= 3:
        return Finding(name, Status.FAIL, version, 'pip install "pandas<3"')
    return Finding(name, Status.OK, version)


def java() -> Finding:
    """Check that there is a Java for Spark."""
    runtime = find_java()
    return Finding("java", Status.OK, f"{runtime.version} ({runtime.java}, from {runtime.found_in})")


def classes(archive: bool) -> Finding:
    """Check for the class archive that makes Spark start faster; with `archive`, create it."""
    runtime = find_java()
    path = class_archive.create_archive(runtime) if archive else runtime.archive
    if path is None or not path.exists():
        return Finding(
            "classes", Status.OK, "not archived", "millstream doctor --archive-classes makes Spark start faster"
        )
    return Finding("classes", Status.OK, f"archived ({path}, {path.stat().st_size >> 20} MiB)")


def memory() -> Finding:
    """Check that the memory suffices for a JVM and two Python workers."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    observed = f"{total / _GIB:.1f} GiB"
    if total < 2 * _GIB:
        return Finding("memory", Status.WARN, observed, "2 GiB or more are recommended; else lower spark.driver.memory")
    return Finding("memory", Status.OK, observed)


def disk(path: str) -> Finding:
    """Check that there is disk space for shuffles and local state."""
    free = shutil.disk_usage(path).free
    observed = f"{free / _GIB:.1f} GiB free in {path}"
    if free < _GIB // 4:
        return Finding("disk", Status.FAIL, observed, "free space, or set spark.local.dir and TMPDIR to a larger disk")
    if free < 2 * _GIB:
        return Finding("disk", Status.WARN, observed, "2 GiB or more are recommended for shuffles and local state")
    return Finding("disk", Status.OK, observed)


def loopback() -> Finding:
    """Check that the loopback interface accepts connections, which the Spark driver needs."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname(), 5):
            return Finding("loopback", Status.OK, "127.0.0.1 accepts connections")
    except OSError as error:
        return Finding("loopback", Status.FAIL, f"127.0.0.1: {error}", "allow connections on the loopback interface")


def checkpoints(directory: str) -> Finding:
    """Check that a file can be written, synced and renamed, as publishing a checkpoint does."""
    if "://" in directory and not directory.startswith("file://"):
        return Finding(
            "checkpoints", Status.WARN, f"remote directory {directory} was not checked", "run a job to check it"
        )
    folder = Path(directory.removeprefix("file://"))
    created = [parent for parent in (folder, *folder.parents) if not parent.exists()]
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
        return Finding("checkpoints", Status.OK, f"{folder}: write, sync and rename succeeded")
    except OSError as error:
        return Finding(
            "checkpoints", Status.FAIL, f"{folder}: {error.strerror}", "choose a directory with write permission"
        )
    finally:
        for parent in created:
            if parent.exists():
                parent.rmdir()


class SparkTrial:
    """Starts Spark as a job does and runs a small Spark job in a process of its own; the result is cached."""

    def __init__(self, master: str | None, settings: Mapping[str, str]) -> None:
        self._configuration = {**settings, **({} if master is None else {SPARK_MASTER.key: master})}

    @cached_property
    def answer(self) -> subprocess.CompletedProcess[str] | None:
        """The result of the process; None if it did not end in time."""
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

    def report(self) -> dict[str, Any] | None:
        """Return what the process reported about Spark; None if Spark did not start."""
        if self.answer is None or self.answer.returncode != 0:
            return None
        report: dict[str, Any] = json.loads(self.answer.stdout.strip().splitlines()[-1])
        return report


def spark_starts(trial: SparkTrial) -> Finding:
    """Check that Spark starts and runs Python functions."""
    report = trial.report()
    if report is not None:
        return Finding("spark", Status.OK, report["seen"])
    if trial.answer is None:
        return Finding(
            "spark",
            Status.FAIL,
            f"no answer in {_SPARK_SECONDS} s",
            "check that the master is reachable and has free cores",
        )
    lines = trial.answer.stderr.strip().splitlines()
    reason, _, hint = (lines[-1] if lines else f"exit code {trial.answer.returncode}").partition("; hint: ")
    return Finding("spark", Status.FAIL, reason, hint or "set spark.log.level=WARN to see Spark's log")


def network(trial: SparkTrial) -> Finding:
    """Check that Spark authenticates and encrypts the network of the cluster."""
    report = trial.report()
    if report is None:
        return Finding("network", Status.WARN, "not known: Spark did not start", "fix the failed check above first")
    missing = [key for key in _PROTECTION if report["settings"].get(key) != "true"]
    if not missing:
        return Finding("network", Status.OK, "authenticated and encrypted by Spark")
    observed = "; ".join(f"{key} is off: {_PROTECTION[key]}" for key in missing)
    return Finding("network", Status.WARN, observed, "see docs/howto/secure.md, unless the network itself is protected")
