"""Submits a program to a session cluster, for `millstream run -d` and `millstream run -m HOST:PORT`.

Promises: a file is uploaded as it is; with dependencies, a zip archive of the program and all of them is uploaded, and
its arguments name their paths in it. Without -d, the command waits for the end of the program; Ctrl-C then leaves it
running.
Does not know: how the cluster runs programs."""

from __future__ import annotations

import argparse
import io
import sys
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path

from millstream import options
from millstream.cli.cluster_address import connect
from millstream.client.remote import RemoteCluster
from millstream.errors import ExternalError, UserError
from millstream.graph.explain import printable

_POLL_SECONDS = 0.2
_PATHS = {
    options.PYTHON_FILES.key: "-pyfs",
    options.PYTHON_REQUIREMENTS.key: "-pyreq",
    options.PYTHON_ARCHIVES.key: "-pyarch",
}


class MissingFile(UserError):
    """A file of the program does not exist."""

    def __init__(self, path: str) -> None:
        super().__init__(f"'{path}' does not exist", hint="name a file or directory on this machine")


class ProgramFailed(ExternalError):
    """The program failed in the cluster."""


def submit(args: argparse.Namespace, path: str | None, arguments: Sequence[str], settings: dict[str, str]) -> int:
    """Upload the program, run it, and wait for its first job, or for its end if it is not detached."""
    submit_program(connect(args), path, args.pyModule, arguments, settings, detached=args.detached)
    return 0


def submit_program(
    cluster: RemoteCluster,
    path: str | None,
    module: str | None,
    arguments: Sequence[str],
    settings: dict[str, str],
    *,
    detached: bool,
) -> None:
    """Upload a file or a module, run it with these arguments and options, and wait for its first job, or for its end if
    it is not detached.

    Raises:
        ProgramFailed: The program failed.

    """
    name, content, words = pack(path, module, settings)
    settings = {key: value for key, value in settings.items() if key not in _PATHS}
    upload = cluster.upload(name, content)
    try:
        program = cluster.run(upload, [*words, *arguments], settings)
    finally:
        cluster.delete_upload(upload)
    _wait(cluster, program, detached=detached)


def pack(path: str | None, module: str | None, settings: dict[str, str]) -> tuple[str, bytes, list[str]]:
    """Return the name and content of the upload, and the arguments that run the program."""
    if path is not None and not Path(path).is_file():
        raise MissingFile(path)
    named = {option: settings[key] for key, option in _PATHS.items() if key in settings}
    if path is not None and path.endswith(".py") and not named:
        return Path(path).name, Path(path).read_bytes(), []
    words: list[str] = []
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        if path is not None:
            archive.write(path, Path(path).name)
            words += ["-py", Path(path).name]
        elif module is not None:
            words += ["-pym", module]
            _add(archive, _find_module(module), "")
        for number, (option, value) in enumerate(named.items()):
            items = []
            for index, item in enumerate(part.strip() for part in value.split(",") if part.strip()):
                source, hash_sign, target = item.partition("#")
                folder = f"dependencies/{number}-{index}/"
                items.append(_add(archive, Path(source), folder) + hash_sign + target)
            words += [option, ",".join(items)]
    name = module if path is None else Path(path).stem
    return f"{name}.zip", buffer.getvalue(), words


def _find_module(module: str) -> Path:
    """Return the top package or the file of a module in the working directory."""
    top = module.partition(".")[0]
    for path in (Path(top), Path(f"{top}.py")):
        if path.exists():
            return path
    missing = f"{top}.py"
    raise MissingFile(missing)


def _add(archive: zipfile.ZipFile, source: Path, folder: str) -> str:
    """Add a file or a directory, and return its name in the archive."""
    if not source.exists():
        raise MissingFile(str(source))
    name = folder + source.name
    if source.is_file():
        archive.write(source, name)
        return name
    for path in sorted(source.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            archive.write(path, f"{name}/{path.relative_to(source).as_posix()}")
    return name


def _wait(cluster: RemoteCluster, program: str, *, detached: bool) -> None:
    shown: set[str] = set()
    while True:
        details = cluster.program(program)
        for job in details["jobs"]:
            if job["jid"] not in shown:
                shown.add(job["jid"])
                print(f"submitted job {job['jid']} ({printable(job['name'])})", flush=True)
        status = details["status"]
        if status == "FAILED":
            print(details["error"], file=sys.stderr)
            msg = f"program {program} failed"
            raise ProgramFailed(msg)
        if status in ("FINISHED", "CANCELED") or (detached and shown):
            if not detached:
                print(f"program {program}: {status}")
            return
        time.sleep(_POLL_SECONDS)
