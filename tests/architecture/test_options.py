"""Every option is documented, and its page is generated from it."""

import ast
import re
import runpy

from sources import REPOSITORY

from millstream.options import OPTIONS


def test_every_option_has_a_description():
    silent = [key for key, option in OPTIONS.items() if not option.description.endswith(".")]
    assert not silent, f"options without a sentence: {silent}"


def test_options_of_sql_are_read_by_their_constants():
    key = re.compile(r"(table|sql-client)\.[a-z0-9-]+(\.[a-z0-9.-]*)?")
    source = REPOSITORY / "src" / "millstream"
    elsewhere = [path for path in sorted(source.rglob("*.py")) if path.relative_to(source).parts[0] != "formats"]
    found = [
        f"{path.relative_to(source)}:{node.lineno} {node.value}"
        for path in elsewhere
        if path.name != "sql_options.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and key.fullmatch(node.value)
    ]
    assert not found, f"declare these options in millstream/sql_options.py: {found}"


def test_the_reference_page_is_up_to_date():
    generator = runpy.run_path(str(REPOSITORY / "docs" / "reference" / "generate_options.py"))
    page = (REPOSITORY / "docs" / "reference" / "options.md").read_text(encoding="utf-8")
    assert page == generator["page"](), "run: python docs/reference/generate_options.py"


def test_a_key_is_never_renamed():
    known = (REPOSITORY / "tests" / "architecture" / "option_keys.txt").read_text(encoding="utf-8").split()
    assert sorted(OPTIONS) == known, "programs name options by their keys; a new one is added to option_keys.txt"
