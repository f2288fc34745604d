"""What holds for all tests: which of them need Spark, and how randomised ones are seeded."""

import os
from pathlib import Path

import hypothesis
import pytest

HERE = Path(__file__).parent
ON_SPARK = (HERE / "spark", HERE / "programs")

hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.register_profile("search", deadline=None, max_examples=1000, print_blob=True)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(folder in item.path.parents for folder in ON_SPARK):
            item.add_marker(pytest.mark.spark)
