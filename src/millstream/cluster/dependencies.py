"""Dependencies of a program (files, archives, packages), bundled into one archive before its job starts.

Promises: a file that is missing, or a package that cannot be installed, is refused by name before the job starts;
packages are installed once, on the driver, for all workers.
Does not know: how the bundle is distributed, and what the files contain."""

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
    """A dependency of the program does not exist."""

    def __init__(self, role: str, path: str) -> None:
        self.role, self.path = role, path
        super().__init__(
            f"the {role} '{path}' does not exist", hint="use its path on the machine that submits the program"
        )


class UnusableDependency(UserError):
    """A dependency of the program cannot be used."""


class RequirementsNotInstalled(UserError):
    """pip could not install the requirements of the program."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"the requirements of '{path}' could not be installed: {reason}",
            hint="try: python -m pip install --target /tmp/try -r FILE; without a network, set requirements_cache_dir",
        )


def bundle_dependencies(configuration: Configuration, scratch: Path) -> Dependencies | None:
    """Bundle all dependencies that the configuration names; None if it names none."""
    files = _split_list(configuration.get(options.PYTHON_FILES))
    archives = [_split_target(text) for text in _split_list(configuration.get(options.PYTHON_ARCHIVES))]
    requirements = configuration.get(options.PYTHON_REQUIREMENTS)
    cached = [parse_map(text) for text in parse_list(configuration.get(options.CACHED_FILES) or "")]
    _refuse_archived_python(configuration, archives)
    if not files and not archives and not requirements and not cached:
        return None
    home = scratch / "bundle"
    for part in (FILES, CACHED, ARCHIVES):
        (home / part).mkdir(parents=True)
    manifest = {
        # of two files with a module of the same name, the one that was added last is imported, as in Flink
        "path": _copy_files(files, home / FILES)[::-1],
        "archives": _copy_archives(archives, home / ARCHIVES),
        "cached": _copy_cached(cached, home / CACHED),
    }
    if requirements:
        _install(
            *_split_target(requirements), home / SITE, configuration.get(options.PYTHON_EXECUTABLE) or sys.executable
        )
        manifest["path"] = [*manifest["path"], SITE]
    (home / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    bundle = scratch / "bundle.tar"
    with tarfile.open(bundle, "w") as tar:
        for entry in sorted(home.iterdir()):
            tar.add(entry, arcname=entry.name)
    shutil.rmtree(home)
    return Dependencies(_digest(bundle), str(bundle), str(scratch / "dependencies"), bool(archives))


def _split_list(text: str | None) -> list[str]:
    return [item.strip() for item in (text or "").split(",") if item.strip()]


def _split_target(text: str) -> tuple[str, str | None]:
    """Split `path#target`, Flink's form, into its parts."""
    path, _, target = text.partition("#")
    return path, target or None


def _check_exists(role: str, path: str) -> Path:
    parts = urlsplit(path)
    if "://" in path and parts.scheme != "file":
        msg = f"the {role} '{path}' is not on a local or mounted file system"
        raise UnusableDependency(msg, hint="use the path of a local copy")
    local_path = Path(unquote(parts.path) if parts.scheme == "file" else path)
    if not local_path.exists():
        raise DependencyMissing(role, path)
    return local_path


def _copy_files(files: list[str], into: Path) -> list[str]:
    """Copy modules, packages, directories and zipped modules; return the entries of the Python path, in order.

    The directory of a file is on the path. A package is importable by its name, the content of a directory that is not
    a package by its own names."""
    path: list[str] = []
    for number, name in enumerate(files):
        source = _check_exists("Python file", name)
        holder = into / str(number)
        holder.mkdir()
        target = holder / source.resolve().name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
            inner = [] if (source / "__init__.py").exists() else [f"{FILES}/{number}/{target.name}"]
            path += [f"{FILES}/{number}", *inner]
        else:
            shutil.copy2(source, target)
            path.append(f"{FILES}/{number}/{target.name}" if target.suffix in _ZIPS else f"{FILES}/{number}")
    return path


def _copy_archives(archives: list[tuple[str, str | None]], into: Path) -> dict[str, str]:
    """Copy archives; return their paths in the bundle by the directory they are unpacked to."""
    copied: dict[str, str] = {}
    for number, (name, target) in enumerate(archives):
        source = _check_exists("Python archive", name)
        if source.is_dir() or not (zipfile.is_zipfile(source) or tarfile.is_tarfile(source)):
            msg = f"'{name}' is not an archive"
            raise UnusableDependency(msg, hint="use a zip or tar file")
        directory = target or source.name
        if Path(directory).is_absolute() or ".." in Path(directory).parts:
            msg = f"the archive '{name}' cannot be unpacked to '{directory}'"
            raise UnusableDependency(msg, hint="use a relative path for target_dir")
        if directory in copied:
            msg = f"two archives are to be unpacked to '{directory}'"
            raise UnusableDependency(msg, hint="use a different target_dir for each")
        shutil.copy2(source, into / str(number))
        copied[directory] = f"{ARCHIVES}/{number}"
    return copied


def _copy_cached(cached: list[dict[str, str]], into: Path) -> dict[str, str]:
    """Copy registered files and directories; return their paths in the bundle by name."""
    copied: dict[str, str] = {}
    for number, entry in enumerate(cached):
        name, path = entry.get("name", ""), entry.get("path", "")
        source = _check_exists("cached file", path)
        (into / str(number)).mkdir()
        target = into / str(number) / source.resolve().name
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy2(source, target)
            if entry.get("executable") == "true":
                target.chmod(target.stat().st_mode | stat.S_IXUSR)
        copied[name] = f"{CACHED}/{number}/{target.name}"
    return copied


def _install(requirements: str, cache: str | None, into: Path, python: str) -> None:
    file = _check_exists("requirements file", requirements)
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", str(into)]
    if cache is not None:
        command += ["--no-index", "--find-links", str(_check_exists("requirements cache", cache))]
    try:
        pip = subprocess.run(
            [*command, "-r", str(file)], capture_output=True, text=True, check=False, timeout=_INSTALL_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise RequirementsNotInstalled(requirements, f"pip did not end within {_INSTALL_SECONDS} s") from None
    except OSError as problem:
        raise RequirementsNotInstalled(requirements, str(problem)) from None
    if pip.returncode != 0:
        lines = [line for line in (pip.stderr or pip.stdout).splitlines() if line.strip()]
        raise RequirementsNotInstalled(requirements, " ".join(lines[-3:]) or f"pip ended with {pip.returncode}")
    into.mkdir(exist_ok=True)  # pip creates none for an empty file


def _refuse_archived_python(configuration: Configuration, archives: list[tuple[str, str | None]]) -> None:
    """Refuse a Python in one of the job's archives: Spark starts the interpreter before it unpacks them."""
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
