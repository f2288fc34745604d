"""One Spark for all tests that need it: two cores, gone at the end."""

from collections.abc import Iterator

import pytest
from pyspark import SparkContext

from millstream.engine.spark import session


@pytest.fixture(scope="session")
def spark_context() -> Iterator[SparkContext]:
    """A running Spark with two cores; its JVM is gone after the last test."""
    context = session.spark_context({"millstream.spark.master": "local[2]", "spark.driver.memory": "1g"}, slots=2)
    jvm = SparkContext._gateway.proc
    yield context
    session.stop()
    assert jvm.poll() is not None, "a JVM was left running"
