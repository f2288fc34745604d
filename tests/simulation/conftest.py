"""Simulations say which seed they ran with, and take another one from MILLSTREAM_SEED."""

import os

import pytest

SEED = int(os.environ.get("MILLSTREAM_SEED", "0"))


def pytest_report_header() -> str:
    return f"MILLSTREAM_SEED={SEED}"


@pytest.fixture(scope="session")
def seed() -> int:
    return SEED
