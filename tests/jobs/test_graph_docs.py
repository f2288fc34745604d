"""The examples of the page about graphs print what their comments say."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "learn" / "graphs.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_prints_its_result(example, capsys):
    exec(compile(example, str(PAGE), "exec"), {"__name__": "example"})
    assert capsys.readouterr().out.splitlines() == re.findall(r"^# (.*)$", example, re.MULTILINE)
    assert re.findall(r"^# ", example, re.MULTILINE)
