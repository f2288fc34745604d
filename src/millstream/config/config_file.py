"""The configuration file: `config.yaml` in the directory MILLSTREAM_CONF_DIR, or in `./conf`.

Promises: keys may be nested or flat, as in Flink's file; a list is converted to Flink's text form of a list. A file
that cannot be read as keys and values is refused with its path and line.
Does not know: which options exist."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from millstream.errors import UserError

DIRECTORY = "MILLSTREAM_CONF_DIR"
_NAME = "config.yaml"


class BadConfigFile(UserError):
    """The configuration file cannot be read."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        super().__init__(f"the configuration file {path} cannot be read: {reason}", hint="write lines `key: value`")


def config_file(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the path of the configuration file; None if there is none.

    Raises:
        BadConfigFile: The directory that the environment names has none.

    """
    directory = environment.get(DIRECTORY)
    path = Path(directory or "conf") / _NAME
    if path.is_file():
        return path
    if directory is None:
        return None
    reason = f"there is no such file, and {DIRECTORY} names its directory"
    raise BadConfigFile(path, reason)


def read_config_file(path: Path) -> dict[str, str]:
    """Return the options of a configuration file."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as problem:
        raise BadConfigFile(path, " ".join(str(problem).split())) from problem
    if content is None:
        return {}
    if not isinstance(content, dict):
        reason = f"it is a {type(content).__name__}, not keys and values"
        raise BadConfigFile(path, reason)
    return dict(_flatten("", content))


def _flatten(prefix: str, content: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    for name, value in content.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict):
            yield from _flatten(f"{key}.", value)
        elif value is not None:
            yield key, _text(value)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ";".join(_text(item) for item in value) if isinstance(value, list) else str(value)
