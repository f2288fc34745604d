"""Parses the arguments that run a Python program, with the names of Flink's `PythonDriver`.

Promises: the options before the program's own arguments are read as `flink run` reads them; paths stay below the
directory of the upload.
Does not know: how programs run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from millstream import options
from millstream.errors import UserError

PYTHON_DRIVER = "org.apache.flink.client.python.PythonDriver"

_OPTIONS = {
    "-py": "py",
    "--python": "py",
    "-pym": "pym",
    "--pyModule": "pym",
    "-pyfs": options.PYTHON_FILES.key,
    "--pyFiles": options.PYTHON_FILES.key,
    "-pyreq": options.PYTHON_REQUIREMENTS.key,
    "--pyRequirements": options.PYTHON_REQUIREMENTS.key,
    "-pyarch": options.PYTHON_ARCHIVES.key,
    "--pyArchives": options.PYTHON_ARCHIVES.key,
    "-pyexec": options.PYTHON_EXECUTABLE.key,
    "--pyExecutable": options.PYTHON_EXECUTABLE.key,
}
_PATHS = (options.PYTHON_FILES.key, options.PYTHON_REQUIREMENTS.key, options.PYTHON_ARCHIVES.key)


class BadArguments(UserError):
    """The arguments do not name a program."""


@dataclass(frozen=True)
class ProgramArguments:
    """What to run: a file or a module, its arguments, and options."""

    file: str | None
    module: str | None
    arguments: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)


def parse_arguments(words: Sequence[str], upload: str) -> ProgramArguments:
    """Read the arguments of a program; without -py and -pym, an uploaded Python file is the program itself."""
    values: dict[str, str] = {}
    index = 0
    while index < len(words) and words[index] in _OPTIONS:
        if index + 1 == len(words):
            msg = f"the option {words[index]} has no value"
            raise BadArguments(msg)
        values[_OPTIONS[words[index]]] = words[index + 1]
        index += 2
    file, module = values.pop("py", None), values.pop("pym", None)
    if file is not None and module is not None:
        msg = "both -py and -pym are set"
        raise BadArguments(msg, hint="name either a file or a module")
    if file is None and module is None:
        if not upload.endswith(".py"):
            msg = f"the arguments do not say what to run of '{upload}'"
            raise BadArguments(msg, hint="add -py FILE or -pym MODULE; FILE is a path in the archive")
        file = upload
    return ProgramArguments(file, module, tuple(words[index:]), values)


def resolve_paths(program: ProgramArguments, directory: Path) -> ProgramArguments:
    """Return the program with absolute paths below the directory of its upload."""
    root = directory.resolve()
    settings = dict(program.settings)
    for key in _PATHS:
        if key in settings:
            settings[key] = ",".join(_resolve(root, item) for item in settings[key].split(",") if item.strip())
    file = None if program.file is None else _resolve(root, program.file)
    return ProgramArguments(file, program.module, program.arguments, settings)


def _resolve(root: Path, item: str) -> str:
    name, hash_sign, target = item.strip().partition("#")
    path = (root / name).resolve()
    if not path.is_relative_to(root):
        msg = f"the path '{name}' is outside of the uploaded program"
        raise BadArguments(msg)
    if not path.exists():
        msg = f"there is no '{name}' in the uploaded program"
        raise BadArguments(msg, hint="paths are relative to the root of the archive")
    return f"{path}{hash_sign}{target}"
