"""The examples of the pages about graphs and iterations print what their comments say."""

import re
from pathlib import Path

import pytest

LEARN = Path(__file__).parents[2] / "docs" / "learn"
EXAMPLES = [
    (page, number, example)
    for page in ("graphs.md", "iterations.md")
    for number, example in enumerate(
        re.findall(r"^```python\n(.*?)^```", (LEARN / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    )
]


@pytest.mark.parametrize(("page", "number", "example"), EXAMPLES, ids=lambda value: str(value)[:20])
def test_an_example_prints_its_result(page, number, example, capsys):
    exec(compile(example, f"{page} {number}", "exec"), {"__name__": "example"})
    expected = re.findall(r"^(?:print.*  )?# (.*)$", example, re.MULTILINE)
    assert expected
    assert capsys.readouterr().out.splitlines() == expected
