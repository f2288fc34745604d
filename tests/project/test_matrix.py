"""The matrix of Spark versions names tests that exist."""

import runpy

import pytest
from sources import REPOSITORY

MATRIX = runpy.run_path(str(REPOSITORY / "tests" / "matrix" / "run.py"))


@pytest.mark.parametrize("test", sorted({*MATRIX["TESTS"], *MATRIX["QUICK_TESTS"]}))
def test_the_matrix_names_tests_that_exist(test: str) -> None:
    path, _, function = test.partition("::")
    assert (REPOSITORY / path).exists()
    if function:
        assert f"def {function.partition('[')[0]}(" in (REPOSITORY / path).read_text(encoding="utf-8")
