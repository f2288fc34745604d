"""The files a program brings along, gathered into one bundle before its job starts.

Promises: what is missing, or cannot be installed, is refused before the job starts, by name; packages are installed
once, here, for all workers.
Does not know: how the bundle travels, or what is in the files."""

from __future__ import annotations

import hashlib
import json
import shutil
import stat
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

from millstream import options
from millstream.config.configuration import Configuration, parse_list, parse_map
from millstream.engine.dependencies import ARCHIVES, CACHED, FILES, MANIFEST, SITE, Dependencies
from millstream.errors import UserError

_INSTALL_SECONDS = 900
_ZIPS = (".zip", ".whl", ".egg", ".jar")


class DependencyMissing(UserError):
    """A file that the program brings along is not there."""

    def __init__(self, what: str, path: str) -> None:
        self.what, self.path = what, path
        super().__init__(f"the {what} '{path}' does not exist", hint="give its path on the machine of the program")


class UnusableDependency(UserError):
    """Something the program brings along cannot be used."""


class RequirementsNotInstalled(UserError):
    """pip could not install what the program requires."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"the requirements of '{path}' could not be installed: {reason}",
            hint="try: python -m pip install --target /tmp/try -r FILE; without a network give requirements_cache_dir",
        )


def gather(configuration: Configuration, scratch: Path) -> Dependencies | None:
    """The bundle of everything the configuration names; None when it names nothing."""
    files = _listed(configuration.get(options.PYTHON_FILES))
    archives = [_pair(text) for text in _listed(configuration.get(options.PYTHON_ARCHIVES))]
    requirements = configuration.get(options.PYTHON_REQUIREMENTS)
    cached = [parse_map(text) for text in parse_list(configuration.get(options.CACHED_FILES) or "")]
    _refuse_archived_python(configuration, archives)
    if not files and not archives and not requirements and not cached:
        return None
    home = scratch / "bundle"
    for part in (FILES, CACHED, ARCHIVES):
        (home / part).mkdir(parents=True)
    manifest = {
        "path": _take_files(files, home / FILES),
        "archives": _take_archives(archives, home / ARCHIVES),
        "cached": _take_cached(cached, home / CACHED),
    }
    if requirements:
        _install(*_pair(requirements), home / SITE, configuration.get(options.PYTHON_EXECUTABLE) or sys.executable)
        manifest["path"] = [*manifest["path"], SITE]
    (home / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    bundle = scratch / "bundle.tar"
    with tarfile.open(bundle, "w") as tar:
        for entry in sorted(home.iterdir()):
            tar.add(entry, arcname=entry.name)
    shutil.rmtree(home)
    return Dependencies(_digest(bundle), str(bundle), str(scratch / "dependencies"), bool(archives))


def _listed(text: str | None) -> list[str]:
    return [each.strip() for each in (text or "").split(",") if each.strip()]


def _pair(text: str) -> tuple[str, str | None]:
    """`path#target` as Flink writes it."""
    path, _, target = text.partition("#")
    return path, target or None


def _existing(what: str, path: str) -> Path:
    parts = urlsplit(path)
    if "://" in path and parts.scheme != "file":
        msg = f"the {what} '{path}' is not on a local or mounted file system"
        raise UnusableDependency(msg, hint="give the path of a local copy")
    found = Path(unquote(parts.path) if parts.scheme == "file" else path)
    if not found.exists():
        raise DependencyMissing(what, path)
    return found


def _take_files(files: list[str], into: Path) -> list[str]:
    """Copy modules, packages, directories and zipped modules; gives what goes on the Python path, first come first.

    A file stands in a directory that goes on the path; a package is importable by its name, and the content of a
    directory that is no package by theirs."""
    path: list[str] = []
    for number, name in enumerate(files):
        given = _existing("Python file", name)
        holder = into / str(number)
        holder.mkdir()
        target = holder / given.resolve().name
        if given.is_dir():
            shutil.copytree(given, target, ignore=shutil.ignore_patterns("__pycache__"))
            inner = [] if (given / "__init__.py").exists() else [f"{FILES}/{number}/{target.name}"]
            path += [f"{FILES}/{number}", *inner]
        else:
            shutil.copy2(given, target)
            path.append(f"{FILES}/{number}/{target.name}" if target.suffix in _ZIPS else f"{FILES}/{number}")
    return path


def _take_archives(archives: list[tuple[str, str | None]], into: Path) -> dict[str, str]:
    """Copy archives; gives {directory it is unpacked to: its place}."""
    taken: dict[str, str] = {}
    for number, (name, target) in enumerate(archives):
        given = _existing("Python archive", name)
        if given.is_dir() or not (zipfile.is_zipfile(given) or tarfile.is_tarfile(given)):
            msg = f"'{name}' is no archive"
            raise UnusableDependency(msg, hint="give a zip or tar file")
        directory = target or given.name
        if Path(directory).is_absolute() or ".." in Path(directory).parts:
            msg = f"the archive '{name}' cannot be unpacked to '{directory}'"
            raise UnusableDependency(msg, hint="give a relative path for target_dir")
        if directory in taken:
            msg = f"two archives are to be unpacked to '{directory}'"
            raise UnusableDependency(msg, hint="give each a target_dir of its own")
        shutil.copy2(given, into / str(number))
        taken[directory] = f"{ARCHIVES}/{number}"
    return taken


def _take_cached(cached: list[dict[str, str]], into: Path) -> dict[str, str]:
    """Copy registered files and directories; gives {name: its place}."""
    taken: dict[str, str] = {}
    for number, entry in enumerate(cached):
        name, path = entry.get("name", ""), entry.get("path", "")
        given = _existing("cached file", path)
        (into / str(number)).mkdir()
        target = into / str(number) / given.resolve().name
        if given.is_dir():
            shutil.copytree(given, target)
        else:
            shutil.copy2(given, target)
            if entry.get("executable") == "true":
                target.chmod(target.stat().st_mode | stat.S_IXUSR)
        taken[name] = f"{CACHED}/{number}/{target.name}"
    return taken


def _install(requirements: str, cache: str | None, into: Path, python: str) -> None:
    file = _existing("requirements file", requirements)
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", str(into)]
    if cache is not None:
        command += ["--no-index", "--find-links", str(_existing("requirements cache", cache))]
    try:
        done = subprocess.run(
            [*command, "-r", str(file)], capture_output=True, text=True, check=False, timeout=_INSTALL_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise RequirementsNotInstalled(requirements, f"pip did not end within {_INSTALL_SECONDS} s") from None
    except OSError as problem:
        raise RequirementsNotInstalled(requirements, str(problem)) from None
    if done.returncode != 0:
        said = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise RequirementsNotInstalled(requirements, " ".join(said[-3:]) or f"pip ended with {done.returncode}")
    into.mkdir(exist_ok=True)  # pip makes none for an empty file


def _refuse_archived_python(configuration: Configuration, archives: list[tuple[str, str | None]]) -> None:
    """Spark starts the interpreter before it knows the job, so it cannot come in the job's own archive."""
    python = configuration.get(options.PYTHON_EXECUTABLE) or ""
    for name, target in archives:
        if python.startswith((target or Path(name).name) + "/"):
            msg = f"the Python '{python}' is inside the archive '{name}'"
            raise UnusableDependency(
                msg,
                hint="let Spark unpack it: spark.archives=FILE#env and python.executable=./env/bin/python",
            )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]
