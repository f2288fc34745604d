"""The source files of both packages as syntax trees, and the allow-list of the rules."""

import ast
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
REPOSITORY = HERE.parent.parent
PACKAGE = REPOSITORY / "src" / "millstream"
CHAOS = REPOSITORY / "packages" / "millstream-chaos" / "src" / "millstream_chaos"


@cache
def trees() -> dict[str, ast.Module]:
    """Every module by its path: `runtime/rowwise.py` below millstream, `millstream_chaos/trace.py` for fault tests."""
    paths = {path.relative_to(PACKAGE).as_posix(): path for path in sorted(PACKAGE.rglob("*.py"))}
    paths |= {path.relative_to(CHAOS.parent).as_posix(): path for path in sorted(CHAOS.rglob("*.py"))}
    return {name: ast.parse(path.read_text(encoding="utf-8"), str(path)) for name, path in paths.items()}


@cache
def allowed(rule: str) -> dict[str, str]:
    """The files for which a rule does not hold, with the reason."""
    table: dict[str, dict[str, str]] = tomllib.loads((HERE / "allowed.toml").read_text(encoding="utf-8"))
    return table[rule]


def imported(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Every module a file imports, with the line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((name.name, node.lineno) for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module, node.lineno
            yield from ((f"{node.module}.{name.name}", node.lineno) for name in node.names)


def dotted(node: ast.AST) -> str:
    """The dotted name `a.b.c` of an expression; empty for other expressions."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        owner = dotted(node.value)
        return f"{owner}.{node.attr}" if owner else ""
    return ""
