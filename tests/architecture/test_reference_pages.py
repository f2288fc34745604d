"""The map of the packages and the page of metrics follow the sources."""

import ast
import re

from sources import REPOSITORY, trees

PACKAGE = REPOSITORY / "src" / "millstream"
MAP = REPOSITORY / "docs" / "internals" / "packages.md"
METRICS = REPOSITORY / "docs" / "reference" / "metrics.md"
PICTURE = re.compile(r"^```mermaid\n(.*?)^```", re.MULTILINE | re.DOTALL)
PATH = re.compile(r"[a-z_]+(?:/[a-z_0-9]+)*(?:\.py|/)")


def test_the_package_map_lists_every_package():
    text = MAP.read_text(encoding="utf-8")
    named = set(re.findall(r"`src/millstream/([\w.]+)`", text))
    there = {path.name for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert named == there - {"__init__.py"}, "the table of docs/internals/packages.md"


def test_the_pictures_name_files_that_exist():
    pictures = PICTURE.findall(MAP.read_text(encoding="utf-8"))
    assert len(pictures) == 4
    for picture in pictures:
        paths = PATH.findall(picture)
        assert len(paths) > 5
        assert [path for path in paths if not (PACKAGE / path).exists()] == []


def counted_names() -> set[str]:
    """The names that operators count under: the first argument of `metrics.count`, and constants such as numLate..."""
    names = set()
    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("metrics.count"):
                names |= {part.value for part in ast.walk(node.args[0]) if isinstance(part, ast.Constant)}
            elif isinstance(node, ast.Constant) and re.fullmatch(r"num[A-Z]\w+", str(node.value)):
                names.add(node.value)
    return {name for name in names if isinstance(name, str)}


def test_the_metrics_page_lists_every_counted_name():
    names = counted_names() - {"numRecords"}  # a field of Delta's statistics
    assert len(names) > 10
    text = METRICS.read_text(encoding="utf-8")
    assert sorted(name for name in names if f"`{name}`" not in text) == []
