"""Checks and unpacks uploaded programs: a Python file, or a zip archive with a program and its dependencies.

Promises: names are plain file names; an archive is extracted below its directory only, and its size is bounded before
anything is written. A Java archive is refused with a sentence.
Does not know: who uploads, and how programs run."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path, PurePosixPath

from millstream.errors import UserError

_NAME = re.compile(r"[\w.+ -]{1,200}")
_MOST_EXTRACTED = 1 << 30  # bytes
_MOST_FILES = 20_000


class BadUpload(UserError):
    """An uploaded file cannot be used."""

    hint = "upload a Python file, or a zip archive with the program and its dependencies"


def check_name(name: str) -> str:
    """Return the plain name of an uploaded file; raise if it is not a program."""
    plain = name.replace("\\", "/").rpartition("/")[2]
    if plain.endswith(".jar"):
        msg = f"'{plain}' is a Java archive, and this cluster runs Python programs"
        raise BadUpload(msg)
    if not _NAME.fullmatch(plain) or not plain.endswith((".py", ".zip")):
        msg = f"'{plain[:200]}' is not the name of a Python file or zip archive"
        raise BadUpload(msg)
    return plain


def unpack(name: str, content: bytes, directory: Path) -> None:
    """Write an uploaded file to a directory; an archive is extracted."""
    directory.mkdir(parents=True, exist_ok=True)
    if not name.endswith(".zip"):
        (directory / name).write_bytes(content)
        return
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _check_members(name, archive)
            archive.extractall(directory)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as problem:
        msg = f"'{name}' is not a zip archive that can be read: {problem}"
        raise BadUpload(msg) from problem


def _check_members(name: str, archive: zipfile.ZipFile) -> None:
    members = archive.infolist()
    if len(members) > _MOST_FILES or sum(member.file_size for member in members) > _MOST_EXTRACTED:
        msg = f"'{name}' has more than {_MOST_FILES} files or {_MOST_EXTRACTED >> 20} MiB"
        raise BadUpload(msg)
    for member in members:
        path = PurePosixPath(member.filename.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts:
            msg = f"'{name}' has a file outside of the archive: '{member.filename[:200]}'"
            raise BadUpload(msg)
