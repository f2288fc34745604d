"""Run a program file with the options of the command line, completely or only up to its plan.

Promises: the file runs as `__main__` with its own arguments and directory; afterwards `sys.argv`, `sys.path` and the
default options are as before.
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
    """Run the file; with `on_execute`, that is called with the first job instead of running it."""
    file = Path(path)
    if not file.is_file():
        msg = f"the program file '{path}' does not exist"
        raise UserError(msg, hint="pass the path of a Python file")
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
