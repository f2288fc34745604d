"""A program file run as its author would run it, with the command line's options, or only up to its plan.

Promises: the file runs as `__main__` with its own arguments and directory; nothing of it is left in this process's
settings afterwards.
Does not know: what the program does."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from millstream.client import local
from millstream.errors import UserError


def run_program(
    path: str,
    args: Sequence[str] = (),
    *,
    configuration: Mapping[str, str] | None = None,
    on_execute: local.OnExecute | None = None,
) -> None:
    """Run the file; with `on_execute`, each job is handed to it instead of being run."""
    file = Path(path)
    if not file.is_file():
        msg = f"there is no program file '{path}'"
        raise UserError(msg, hint="give the path of a Python file")
    before_argv, before_path = sys.argv, sys.path[:]
    before_defaults = dict(local._defaults)
    sys.argv = [str(file), *args]
    sys.path.insert(0, str(file.resolve().parent))
    local._defaults.update(configuration or {})
    if on_execute is not None:
        local._intercept.append(on_execute)
    try:
        runpy.run_path(str(file), run_name="__main__")
    except local.PlanOnly:
        pass
    finally:
        sys.argv, sys.path[:] = before_argv, before_path
        local._defaults.clear()
        local._defaults.update(before_defaults)
        if on_execute is not None:
            local._intercept.pop()
