"""The tutorial, block by block as it is written, against a real broker."""

import re
from pathlib import Path

import pytest

TUTORIAL = Path(__file__).parent.parent.parent / "docs" / "learn" / "tutorial.md"


@pytest.mark.usefixtures("inline_engine")
def test_every_block_of_the_tutorial_runs():
    blocks = re.findall(
        r"^```python tutorial\n(.*?)^```", TUTORIAL.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert len(blocks) == 9
    session = {"__name__": "__main__"}
    try:
        for number, block in enumerate(blocks, 1):
            exec(compile(block, f"<block {number}>", "exec"), session)
    finally:
        if "job" in session:
            session["job"].cancel()
        if "broker" in session:
            session["broker"].close()
