"""Rows are visited in one module."""

import ast

from sources import allowed, trees

VISITS = {"to_pylist", "as_py", "iterrows", "itertuples"}


def visits(tree: ast.Module) -> list[int]:
    return sorted(node.lineno for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr in VISITS)


def test_the_rule_sees_a_visit():
    assert visits(ast.parse("rows = [cell.as_py() for cell in column]\nlisted = column.to_pylist()")) == [1, 2]


def test_rows_are_visited_only_where_user_functions_are_called():
    found = {name: lines for name, tree in trees().items() if (lines := visits(tree)) and name not in allowed("rows")}
    assert not found, f"rows are visited outside runtime/rowwise.py: {found}"


def test_every_exception_still_exists():
    gone = [name for name in allowed("rows") if name not in trees()]
    assert not gone, f"allowed.toml names files that are gone: {gone}"
