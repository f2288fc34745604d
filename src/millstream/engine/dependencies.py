"""The dependencies of a program on workers: modules to import, archives, packages and cached files.

Promises: the bundle of a job is unpacked once on a host, by the first worker that needs it. When a worker serves
another job, modules of the earlier job's bundle are no longer imported.
Does not know: who created the bundle, or how its bytes are sent."""

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
        """The directory of the unpacked bundle."""
        return Path(self.root) / self.digest

    @property
    def working_directory(self) -> Path:
        """The directory in which tasks run, so that relative paths lead to unpacked archives."""
        return self.home / WORK

    def read(self) -> bytes:
        """Read the bundle; on the driver only."""
        return Path(self.path).read_bytes()


_active: list[Dependencies] = []


def activate(dependencies: Dependencies | None, read: Callable[[], bytes]) -> None:
    """Make a job's modules importable in this process, and remove those of the job before."""
    if (_active[0] if _active else None) == dependencies:
        return
    _deactivate()
    if dependencies is not None:
        unpack(dependencies, read)
        sys.path[:0] = [str(dependencies.home / name) for name in manifest(dependencies)["path"]]
        importlib.invalidate_caches()
        _active.append(dependencies)


def _deactivate() -> None:
    while _active:
        home = str(_active.pop().home) + os.sep
        sys.path[:] = [path for path in sys.path if not path.startswith(home)]
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None) or "").startswith(home):
                del sys.modules[name]


@contextlib.contextmanager
def in_working_directory(dependencies: Dependencies | None) -> Iterator[None]:
    """Run tasks in the directory of the job's archives, if it has any."""
    if dependencies is None or not dependencies.changes_directory:
        yield
        return
    with contextlib.chdir(dependencies.working_directory):
        yield


def manifest(dependencies: Dependencies) -> dict[str, Any]:
    """Read which files an unpacked bundle has, and where."""
    content: dict[str, Any] = json.loads((dependencies.home / MANIFEST).read_text(encoding="utf-8"))
    return content


def cached_files(dependencies: Dependencies | None) -> dict[str, str]:
    """Return the path of each cached file on this host, by its registered name."""
    if dependencies is None:
        return {}
    return {name: str(dependencies.home / path) for name, path in manifest(dependencies)["cached"].items()}


def unpack(dependencies: Dependencies, read: Callable[[], bytes]) -> None:
    """Unpack the bundle on this host, unless another worker has done so."""
    if dependencies.home.exists():
        return
    scratch.use(str(Path(dependencies.root).parent))  # creates the directory, with access for its owner only
    Path(dependencies.root).mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f"{dependencies.digest}-", dir=dependencies.root))
    try:
        with tarfile.open(fileobj=io.BytesIO(read())) as bundle:
            bundle.extractall(draft, filter="tar")
        for target, path in json.loads((draft / MANIFEST).read_text(encoding="utf-8"))["archives"].items():
            extract(draft / path, draft / WORK / target)
        os.rename(draft, dependencies.home)
    except OSError:
        if not dependencies.home.exists():  # else another worker was faster
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def extract(archive: Path, target: Path) -> None:
    """Unpack a zip or tar archive; names that lead out of the target are refused or shortened."""
    target.mkdir(parents=True, exist_ok=True)
    if tarfile.is_tarfile(archive):  # tested first: a tar that ends with a zip looks like a zip too
        with tarfile.open(archive) as opened:
            opened.extractall(target, filter="data")
        return
    with zipfile.ZipFile(archive) as opened_zip:
        for entry in opened_zip.infolist():
            written = opened_zip.extract(entry, target)
            mode = stat.S_IMODE(entry.external_attr >> 16)
            if mode and not entry.is_dir():
                os.chmod(written, mode & 0o777 | stat.S_IRUSR | stat.S_IWUSR)
