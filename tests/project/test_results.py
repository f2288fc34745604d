"""README and the guides quote measured speeds only from benchmarks/RESULTS.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent
RESULTS = REPOSITORY / "benchmarks" / "RESULTS.md"
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs" / "howto").glob("*.md")),
         *sorted((REPOSITORY / "docs" / "learn").glob("*.md")), REPOSITORY / "docs" / "index.md"]  # fmt: skip
NUMBER = r"(\d[\d,]*(?:\.\d+)?)"
# A rate, a ratio to a rate, or a multiple of a peer: what only a benchmark can say.
QUOTES = re.compile(
    rf"{NUMBER}\s*(?:million |k )?(?:records|rows|events)(?: per second|/s| a second)"
    rf"|{NUMBER}\s*(?:times|×) (?:the throughput|the rate|faster|as fast)",
    re.IGNORECASE,
)


def find_quotes(text: str) -> list[str]:
    """Return the figures of a text that read like a result of a benchmark, without code."""
    prose = re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)
    return [next(filter(None, match.groups())) for match in QUOTES.finditer(" ".join(prose.split()))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_a_page_quotes_only_the_results(page: Path) -> None:
    numbers = set(re.findall(r"\d[\d,]*(?:\.\d+)?", RESULTS.read_text(encoding="utf-8")))
    missing = [quote for quote in find_quotes(page.read_text(encoding="utf-8")) if quote not in numbers]
    assert not missing, f"not in benchmarks/RESULTS.md: {missing}"


def test_what_counts_as_a_quote() -> None:
    text = "3.9 times the throughput of Flink, 5.9 million\nrecords per second, or 1,200 rows/s; `9 rows/s` is code"
    assert find_quotes(text) == ["3.9", "5.9", "1,200"]
    assert find_quotes("a budget of 20,000 records, 1.5 times the memory, 100 events") == []


def test_an_incomplete_run_is_not_quoted() -> None:
    if "The newest complete run." not in RESULTS.read_text(encoding="utf-8"):
        quotes = {page.name: found for page in PAGES if (found := find_quotes(page.read_text(encoding="utf-8")))}
        assert not quotes
