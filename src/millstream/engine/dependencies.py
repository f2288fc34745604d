"""The files a program brings along, as workers see them: modules to import, archives, packages and cached files.

Promises: the bundle of a job is unpacked once on a host, whichever worker comes first; modules of one job's bundle are
not seen by the next job that a worker serves.
Does not know: who made the bundle, or how its bytes travel."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import shutil
import stat
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from millstream.engine import scratch

FILES, SITE, CACHED, ARCHIVES, WORK = "files", "site", "cached", "archives", "work"
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Dependencies:
    """A bundle: `path` is its file on the driver, `root` the directory it is unpacked in on every host."""

    digest: str
    path: str
    root: str
    changes_directory: bool = False

    @property
    def home(self) -> Path:
        """Where the content is, once it is unpacked."""
        return Path(self.root) / self.digest

    @property
    def working_directory(self) -> Path:
        """Where archives are found by relative paths."""
        return self.home / WORK

    def read(self) -> bytes:
        """The bundle, on the driver."""
        return Path(self.path).read_bytes()


_active: list[Dependencies] = []


def activate(wanted: Dependencies | None, read: Callable[[], bytes]) -> None:
    """Make a job's modules importable in this process, and those of another job no longer."""
    if (_active[0] if _active else None) == wanted:
        return
    _deactivate()
    if wanted is not None:
        unpack(wanted, read)
        sys.path[:0] = [str(wanted.home / name) for name in manifest(wanted)["path"]]
        importlib.invalidate_caches()
        _active.append(wanted)


def _deactivate() -> None:
    while _active:
        home = str(_active.pop().home) + os.sep
        sys.path[:] = [path for path in sys.path if not path.startswith(home)]
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None) or "").startswith(home):
                del sys.modules[name]


@contextlib.contextmanager
def at_work(wanted: Dependencies | None) -> Iterator[None]:
    """A task runs: relative paths lead to the job's archives, if it has any."""
    if wanted is None or not wanted.changes_directory:
        yield
        return
    with contextlib.chdir(wanted.working_directory):
        yield


def manifest(wanted: Dependencies) -> dict[str, Any]:
    """What is where in an unpacked bundle."""
    found: dict[str, Any] = json.loads((wanted.home / MANIFEST).read_text(encoding="utf-8"))
    return found


def cached_files(wanted: Dependencies | None) -> dict[str, str]:
    """Where each registered file is on this host."""
    if wanted is None:
        return {}
    return {name: str(wanted.home / path) for name, path in manifest(wanted)["cached"].items()}


def unpack(wanted: Dependencies, read: Callable[[], bytes]) -> None:
    """Have the bundle on this host; a worker that comes second finds it there."""
    if wanted.home.exists():
        return
    scratch.use(str(Path(wanted.root).parent))  # which makes it, for its owner only
    Path(wanted.root).mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f"{wanted.digest}-", dir=wanted.root))
    try:
        with tarfile.open(fileobj=io.BytesIO(read())) as bundle:
            bundle.extractall(aside, filter="tar")
        for target, path in json.loads((aside / MANIFEST).read_text(encoding="utf-8"))["archives"].items():
            extract(aside / path, aside / WORK / target)
        os.rename(aside, wanted.home)
    except OSError:
        if not wanted.home.exists():  # else another worker was faster
            raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def extract(archive: Path, target: Path) -> None:
    """Unpack a zip or tar archive; names that lead out of the target are refused or cut off."""
    target.mkdir(parents=True, exist_ok=True)
    if tarfile.is_tarfile(archive):  # asked first: a tar that ends with a zip looks like a zip too
        with tarfile.open(archive) as opened:
            opened.extractall(target, filter="data")
        return
    with zipfile.ZipFile(archive) as opened_zip:
        for entry in opened_zip.infolist():
            written = opened_zip.extract(entry, target)
            mode = stat.S_IMODE(entry.external_attr >> 16)
            if mode and not entry.is_dir():
                os.chmod(written, mode & 0o777 | stat.S_IRUSR | stat.S_IWUSR)
