"""Settings of the documentation site (`make docs`).

The Markdown pages are written for GitHub. Two things change when they are read here. Links to files outside of docs
lead to the repository. The sections of index.md become the navigation, so a page that index.md does not link is a
warning, and the build treats warnings as errors."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from millstream import __version__

REPOSITORY = "https://github.com/millstream/millstream"
DOCS = Path(__file__).parent
LINK = re.compile(r"\]\(((?!https?:)[^)#\s]+)(#[^)]*)?\)")
SECTION = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)

project = "millstream"
copyright = "The millstream authors"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinxcontrib.mermaid"]
root_doc = "index"
exclude_patterns: list[str] = []

myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]

# Docstrings write code in single backticks.
default_role = "code"
autodoc_default_options = {
    "members": True,
    "imported-members": True,
    # Members of other base classes, such as those of windowed streams, are shown; those of these classes would repeat.
    "inherited-members": "object, int, tuple, BaseException, Enum, "
    "DataStream, Function, SourceFunction, SinkFunction, FileSink, "
    "Trigger, Evictor, WindowAssigner, MergingWindowAssigner, Window, Constraint",
    "show-inheritance": True,
}
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
# The fields of a named tuple are members; with its `Attributes` as objects they would be described twice.
napoleon_use_ivar = True

# `ListState` and `MapState` are keyed state, and entries of process table functions: a type hint cannot name which.
suppress_warnings = ["ref.python"]

# Without this, the navigation of every page holds every method.
toc_object_entries = False

html_theme = "furo"
html_title = f"millstream {release}"
html_theme_options = {"source_repository": REPOSITORY, "source_branch": "main", "source_directory": "docs/"}


def link_to_repository(page: Path, text: str) -> str:
    """Replace links to files outside of docs by their addresses in the repository."""

    def replace(link: re.Match[str]) -> str:
        target = Path(os.path.normpath(page.parent / link[1]))
        if target.is_relative_to(DOCS):
            return link[0]
        kind = "tree" if target.is_dir() else "blob"
        return f"]({REPOSITORY}/{kind}/main/{target.relative_to(DOCS.parent).as_posix()}{link[2] or ''})"

    return LINK.sub(replace, text)


def navigation(index: str) -> str:
    """Return a table of contents for each section of the index, with the pages that it links, in the same order."""
    parts = []
    for caption, section in SECTION.findall(index):
        pages = [target for target, _ in LINK.findall(section) if target.endswith(".md")]
        listed = "\n".join(dict.fromkeys(pages))
        parts.append(f"```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{listed}\n```\n")
    return "\n".join(parts)


def read_page(_app: Any, name: str, source: list[str]) -> None:
    if name == root_doc:
        source[0] += "\n" + navigation(source[0])
    source[0] = link_to_repository(DOCS / f"{name}.md", source[0])


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("source-read", read_page)
