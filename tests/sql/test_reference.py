"""The page of functions is what the declarations say."""

import runpy
from pathlib import Path

REFERENCE = Path(__file__).parent.parent.parent / "docs" / "reference"


def test_the_page_of_functions_is_up_to_date() -> None:
    made = runpy.run_path(str(REFERENCE / "generate_functions.py"))["page"]()
    assert (REFERENCE / "functions.md").read_text(encoding="utf-8") == made, "run docs/reference/generate_functions.py"
