"""What holds for all tests: which of them need Spark, and how randomised ones are seeded."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
    # Spark last: its gateway leaves threads behind, which unit tests would not put up with.
    items.sort(key=lambda item: item.get_closest_marker("spark") is not None)


@pytest.fixture(scope="session")
def spark_context() -> Iterator[Any]:
    """A running Spark with two cores, one for all tests that need it; its JVM is gone after the last of them."""
    from pyspark import SparkContext  # here, so that unit tests start without it

    from millstream.engine.spark import session

    context = session.spark_context({"millstream.spark.master": "local[2]", "spark.driver.memory": "1g"}, slots=2)
    jvm = SparkContext._gateway.proc
    yield context
    session.stop()
    assert jvm.poll() is not None, "a JVM was left running"


@pytest.fixture
def inline_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs run in this process, without Spark."""
    from millstream.client import local
    from millstream.client.job_client import JobClient
    from millstream.cluster import entrypoint
    from millstream.testing.inline_engine import InlineEngine

    def submit(graph: Any, configuration: Any, name: str, listeners: Any = ()) -> JobClient:
        running = entrypoint.submit(graph, configuration, name, engine=InlineEngine(), listeners=listeners)
        return JobClient(local.LocalHandle(running))

    monkeypatch.setattr(local, "submit", submit)
    monkeypatch.setitem(local._defaults, "millstream.sql.batch-engine", "operators")
