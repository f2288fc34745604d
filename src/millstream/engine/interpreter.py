"""The Python interpreter of tasks in a Spark that the program has started itself.

Promises: a local Spark runs tasks in the interpreter of the program, unless another one is set. PySpark itself takes
the first `python3` of the path, which has no millstream if the program's environment is not activated.
Does not know: a Spark that millstream starts."""

from __future__ import annotations

import os
import sys
from typing import Any


def use_own_interpreter(context: Any) -> None:
    """Let the tasks of a local SparkContext run in the interpreter of this process, unless another one is set."""
    is_set = "PYSPARK_PYTHON" in os.environ or context.getConf().contains("spark.pyspark.python")
    if context.master.startswith("local") and not is_set:
        context.pythonExec = sys.executable
