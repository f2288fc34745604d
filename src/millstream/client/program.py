"""Runs a program, a file or a module, with the options of the command line; completely, or only up to its first job.

Promises: the program runs as `__main__` with its own arguments and directory, and imports the Python files that the
options name, as its tasks do; afterwards `sys.argv`, `sys.path` and the default options are as before.
Does not know: what the program does."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from millstream import options
from millstream.client import local
from millstream.errors import UserError


def run_program(
    path: str,
    args: Sequence[str] = (),
    *,
    configuration: Mapping[str, str] | None = None,
    on_execute: local.OnExecute | None = None,
) -> None:
    """Run the file; with `on_execute`, that is called with the first job instead of running it."""
    file = Path(path)
    if not file.is_file():
        msg = f"the program file '{path}' does not exist"
        raise UserError(msg, hint="pass the path of a Python file")
    with _as_program(str(file), args, str(file.resolve().parent), configuration, on_execute):
        runpy.run_path(str(file), run_name="__main__")


def run_module(
    module: str,
    args: Sequence[str] = (),
    *,
    configuration: Mapping[str, str] | None = None,
    on_execute: local.OnExecute | None = None,
) -> None:
    """Run a module of the working directory or of the Python path, as `python -m` does."""
    with _as_program(module, args, str(Path.cwd()), configuration, on_execute):
        runpy.run_module(module, run_name="__main__", alter_sys=True)


@contextmanager
def _as_program(
    name: str,
    args: Sequence[str],
    directory: str,
    configuration: Mapping[str, str] | None,
    on_execute: local.OnExecute | None,
) -> Iterator[None]:
    before_argv, before_path = sys.argv, sys.path[:]
    before_defaults = dict(local._defaults)
    sys.argv = [name, *args]
    sys.path[:0] = [directory, *find_import_paths((configuration or {}).get(options.PYTHON_FILES.key, ""))]
    local._defaults.update(configuration or {})
    if on_execute is not None:
        local._intercept.append(on_execute)
    try:
        yield
    except local.PlanOnly:
        pass
    finally:
        sys.argv, sys.path[:] = before_argv, before_path
        local._defaults.clear()
        local._defaults.update(before_defaults)
        if on_execute is not None:
            local._intercept.pop()


def find_import_paths(files: str) -> list[str]:
    """Return where modules of these Python files are found: the directory of a module or a package, a zip archive, or
    a directory of modules. A file that does not exist is refused when the job starts."""
    paths = []
    for name in filter(None, map(str.strip, files.split(","))):
        path = Path(name.removeprefix("file://")).resolve()
        is_content = path.suffix in (".zip", ".whl", ".egg") or (path.is_dir() and not (path / "__init__.py").exists())
        paths.append(str(path if is_content else path.parent))
    return paths[::-1]  # of two modules of one name, the one that was added last is imported
