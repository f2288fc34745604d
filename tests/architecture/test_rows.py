"""Types take Python values out of columns; helpers that make rows of columns are called where a reason is given."""

import ast

from sources import allowed, trees

VISITS = {"to_pylist", "as_py", "iterrows", "itertuples"}
HELPERS = {"to_python_values", "to_internal_values", "to_tuples", "read_rows_with_kinds", "from_arrow"}


def visits(tree: ast.Module) -> list[int]:
    return sorted(node.lineno for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr in VISITS)


def test_the_check_detects_a_row_loop():
    assert visits(ast.parse("rows = [cell.as_py() for cell in column]\nlisted = column.to_pylist()")) == [1, 2]


def test_only_listed_modules_convert_columns_to_values():
    found = {name: lines for name, tree in trees().items() if (lines := visits(tree)) and name not in allowed("rows")}
    assert not found, f"Python values are taken out of columns: {found}"


def helpers_used(tree: ast.Module) -> set[str]:
    """The helpers that a module calls or imports; a helper that it imports under another name counts too."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    names |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    return names & HELPERS


def helpers_defined(tree: ast.Module) -> set[str]:
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)} & HELPERS


def test_the_check_detects_a_row_helper():
    assert helpers_used(ast.parse("from millstream.sql.columns import to_tuples as rows")) == {"to_tuples"}
    assert helpers_used(ast.parse("from millstream.sql import columns\ncolumns.to_internal_values(a, b)"))
    assert helpers_used(ast.parse("keys = zip(*map(to_python_values, columns))")) == {"to_python_values"}


def test_row_helpers_are_called_only_in_listed_modules():
    known = allowed("row_helpers")
    found = {name: sorted(used) for name, tree in trees().items() if (used := helpers_used(tree)) and name not in known}
    assert not found, f"Python rows are made of columns; work on columns, or give a reason in allowed.toml: {found}"


def test_every_helper_is_known():
    defined = {name for tree in trees().values() for name in helpers_defined(tree)}
    assert defined == HELPERS, "HELPERS names functions that are gone or were renamed"


def test_every_exception_is_still_needed():
    assert set(allowed("rows")) == {name for name, tree in trees().items() if visits(tree)}
    needed = {name for name, tree in trees().items() if helpers_used(tree) or helpers_defined(tree)}
    unneeded = set(allowed("row_helpers")) - needed
    assert not unneeded, f"allowed.toml names files that are gone or make no rows: {unneeded}"
