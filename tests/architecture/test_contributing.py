"""CONTRIBUTING.md and the glossary name files, classes and functions that exist.

Local links of all pages are checked by tests/unit/test_docs.py."""

import ast
import re
from functools import cache

import pytest
from sources import REPOSITORY, trees

PAGES = ("CONTRIBUTING.md", "docs/internals/glossary.md")
TOP = ("src", "packages", "tests", "docs", "examples", "benchmarks", ".github")

FENCE = re.compile(r"^ *```(?P<info>[^\n]*)\n(?P<code>.*?)^ *```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`\n]+)`")
NAMED = re.compile(r"(?P<path>[\w./-]+\.py): (?P<name>[A-Za-z_][\w.]*)")
PATH = re.compile(rf"(?:{'|'.join(map(re.escape, TOP))})/[\w./-]+|[\w.-]+\.(?:md|toml|yaml|lock)")
CLASS = re.compile(r"(?P<owner>[A-Z][A-Za-z]*[a-z][A-Za-z]*)(?:\.(?P<member>\w+))?")


def spans(text: str) -> list[str]:
    """The texts between back-ticks, outside of code blocks."""
    return SPAN.findall(FENCE.sub("", text))


def quotations(text: str) -> list[tuple[str, list[str]]]:
    """The code blocks that quote a file of the repository, as its path and the lines."""
    found = []
    for block in FENCE.finditer(text):
        language, _, path = block["info"].strip().partition(" ")
        if language == "python" and path and path != "runnable":
            found.append((path, [line.strip() for line in block["code"].splitlines() if line.strip()]))
    return found


def defines(body: list[ast.stmt], name: str) -> bool:
    """Whether a module or a class defines `name`, or `Class.member`."""
    first, _, rest = name.partition(".")
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == first:
            return not rest or (isinstance(node, ast.ClassDef) and defines(node.body, rest))
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if not rest and any(isinstance(target, ast.Name) and target.id == first for target in targets):
            return True
    return False


@cache
def classes() -> dict[str, list[ast.ClassDef]]:
    """The classes of the package by name."""
    found: dict[str, list[ast.ClassDef]] = {}
    for tree in trees().values():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(node)
    return found


def problem(span: str) -> str | None:
    """What is wrong with a span; None if it names nothing of the repository, or something that exists."""
    if named := NAMED.fullmatch(span):
        file = REPOSITORY / named["path"]
        if not file.is_file():
            return f"{named['path']} does not exist"
        found = defines(ast.parse(file.read_text(encoding="utf-8")).body, named["name"])
        return None if found else f"{named['path']} does not define {named['name']}"
    if PATH.fullmatch(span):
        return None if (REPOSITORY / span).exists() else f"{span} does not exist"
    if (name := CLASS.fullmatch(span)) and not (REPOSITORY / span).exists():
        owners = classes().get(name["owner"], [])
        if not owners:
            return f"there is no class {name['owner']}"
        if name["member"] and not any(defines(owner.body, name["member"]) for owner in owners):
            return f"{name['owner']} does not define {name['member']}"
    return None


@pytest.mark.parametrize("page", PAGES)
def test_every_path_and_name_of_a_page_exists(page):
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    named = spans(text)
    problems = [found for span in named if (found := problem(span))]
    assert not problems, f"{page}: {problems}"
    assert sum(bool(NAMED.fullmatch(span)) for span in named) > 10  # otherwise the pattern no longer matches the page


@pytest.mark.parametrize("page", PAGES)
def test_quoted_code_exists_in_its_file(page):
    for path, quoted in quotations((REPOSITORY / page).read_text(encoding="utf-8")):
        lines = iter(line.strip() for line in (REPOSITORY / path).read_text(encoding="utf-8").splitlines())
        missing = [line for line in quoted if line not in lines]  # each name is searched for after the previous one
        assert not missing, f"{page} quotes lines that {path} does not have in this order: {missing[0]}"


def test_each_worked_example_quotes_the_code():
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    sections = [part for part in re.split(r"^## ", text, flags=re.MULTILINE) if part.startswith("How to add")]
    assert len(sections) == 5
    assert all(quotations(section) for section in sections)


def test_a_term_of_the_glossary_is_explained_once():
    text = (REPOSITORY / "docs/internals/glossary.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    terms = [row[0] for row in rows if row[0] not in ("term", "---")]
    assert len(set(terms)) == len(terms)
    assert all(len(row) == 3 for row in rows)
    assert all("." in row[1] for row in rows if row[0] in terms), "a meaning is a sentence"


@pytest.mark.parametrize(
    "span",
    [
        "src/millstream/nowhere.py",
        "NOWHERE.md",
        "src/millstream/runtime/watermarks.py: Combined.forget",
        "src/millstream/nowhere.py: anything",
        "NowhereSpec",
        "OperatorSpec.destroy",
    ],
)
def test_the_check_detects_missing_names(span):
    assert problem(span)


@pytest.mark.parametrize("span", ["make test", "key_by", "SHA2", "OperatorSpec.build", "Makefile", "chk-N/_metadata"])
def test_the_check_accepts_other_words(span):
    assert problem(span) is None
