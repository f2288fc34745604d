"""Paths and URIs: on which file system a file is.

Promises: a path without a scheme is local; a URI stays a URI, a local path becomes absolute.
Does not know: which schemes can be read."""

from __future__ import annotations

import os
from urllib.parse import urlsplit


def is_uri(path: str) -> bool:
    """Whether a path is on a remote file system rather than a local disk."""
    return "://" in path and not path.startswith("file://")


def absolute_location(path: str) -> str:
    """Return a location that means the same in every process: an absolute local path, or the URI."""
    return path.rstrip("/") if is_uri(path) else os.path.abspath(path.removeprefix("file://"))


def scheme_of(path: str) -> str | None:
    """Return the scheme of a URI; None for a local path."""
    return urlsplit(path).scheme if "://" in path else None


def join_path(base: str, name: str) -> str:
    """Return the path of a name below a base path; without a name, the base path."""
    return f"{base.rstrip('/')}/{name}" if name else base
