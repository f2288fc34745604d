"""Code in the documentation runs, and its links lead somewhere."""

import re
from pathlib import Path

import pytest

from millstream.client import local
from millstream.client.job_client import JobClient
from millstream.cluster import entrypoint
from millstream.testing.inline_engine import InlineEngine

REPOSITORY = Path(__file__).parent.parent.parent
PAGES = sorted([*(REPOSITORY / "docs").rglob("*.md"), *REPOSITORY.glob("*.md")])
FENCE = re.compile(r"^```python runnable\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]+\]\((?!https?:|#)([^)#]+)")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
REFERENCE = re.compile(r"\]\[([^\]]+)\]")
DEFINITION = re.compile(r"^\[([^\]]+)\]: \S+$", re.MULTILINE)
TO_COME: set[str] = set()  # pages that are linked and not written yet


def name_of(page: Path) -> str:
    return page.relative_to(REPOSITORY).as_posix()


BLOCKS = [
    pytest.param(block, id=f"{name_of(page)}-{number}")
    for page in PAGES
    for number, block in enumerate(FENCE.findall(page.read_text(encoding="utf-8")), 1)
]


@pytest.fixture
def inline(monkeypatch):
    def submit(graph, configuration, name, listeners=()):
        running = entrypoint.submit(graph, configuration, name, engine=InlineEngine(), listeners=listeners)
        return JobClient(local.LocalHandle(running))

    monkeypatch.setattr(local, "submit", submit)


@pytest.mark.usefixtures("inline")
@pytest.mark.parametrize("block", BLOCKS)
def test_a_runnable_block_runs(block):
    exec(compile(block, "<documentation>", "exec"), {"__name__": "__main__"})


def test_there_are_runnable_blocks():
    assert len(BLOCKS) >= 4


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_link_leads_to_a_file(page):
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        found = (page.parent / target).resolve()
        known = found.is_relative_to(REPOSITORY) and found.relative_to(REPOSITORY).as_posix() in TO_COME
        assert known or found.exists(), f"{name_of(page)} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_link_by_name_is_defined_and_a_definition_is_used(page):
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    defined = DEFINITION.findall(text)
    assert sorted(set(defined)) == sorted(defined)
    assert set(REFERENCE.findall(text)) == set(defined)
