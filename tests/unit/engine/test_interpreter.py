"""Tasks of a Spark that the program has started run in the program's interpreter."""

import sys
from typing import Any

import pytest

from millstream.engine.interpreter import use_own_interpreter


class Context:
    def __init__(self, master: str, **settings: str) -> None:
        self.master, self.settings, self.pythonExec = master, settings, "python3"

    def getConf(self) -> Any:
        return self

    def contains(self, key: str) -> bool:
        return key in self.settings


@pytest.mark.parametrize(
    ("context", "variable", "expected"),
    [
        (Context("local[2]"), None, sys.executable),
        (Context("local[2]"), "/opt/python", "python3"),
        (Context("local[2]", **{"spark.pyspark.python": "/opt/python"}), None, "python3"),
        (Context("spark://host:7077"), None, "python3"),
    ],
)
def test_a_local_spark_uses_the_interpreter_of_the_program(
    context: Context, variable: str | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    if variable is not None:
        monkeypatch.setenv("PYSPARK_PYTHON", variable)
    use_own_interpreter(context)
    assert context.pythonExec == expected
