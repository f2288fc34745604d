"""Every option is documented, and its page is generated from it."""

import runpy

from sources import REPOSITORY

from millstream.options import OPTIONS


def test_every_option_says_what_it_does():
    silent = [key for key, option in OPTIONS.items() if not option.description.endswith(".")]
    assert not silent, f"options without a sentence: {silent}"


def test_the_reference_page_is_up_to_date():
    generator = runpy.run_path(str(REPOSITORY / "docs" / "reference" / "generate_options.py"))
    page = (REPOSITORY / "docs" / "reference" / "options.md").read_text(encoding="utf-8")
    assert page == generator["page"](), "run: python docs/reference/generate_options.py"


def test_a_key_is_never_renamed():
    known = (REPOSITORY / "tests" / "architecture" / "option_keys.txt").read_text(encoding="utf-8").split()
    assert sorted(OPTIONS) == known, "programs name options by their keys; a new one is added to option_keys.txt"
