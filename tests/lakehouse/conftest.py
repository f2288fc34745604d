"""Whole jobs in this process, without Spark."""

from __future__ import annotations

import pytest

pytest.importorskip("deltalake")


@pytest.fixture(autouse=True)
def inline(inline_engine: None) -> None:
    """Every job of this folder runs on the inline engine."""
