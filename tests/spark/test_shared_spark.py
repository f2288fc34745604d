"""Another process uses the Spark of this one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from millstream.engine.spark.shared import PROGRAM, list_gateway_variables

pytestmark = pytest.mark.spark

ATTACHED = """
import json, os, sys
from millstream.engine.spark.session import spark_context
from millstream.engine.spark.shared import is_shared, use_own_pool

context = spark_context({}, 1)
use_own_pool(context)
total = context.accumulator(0)

def add(number):
    total.add(number)
    return os.environ["MILLSTREAM_PROGRAM"], sys.executable

workers = set(context.parallelize(range(10), 2).map(add).collect())
pool = context.getLocalProperty("spark.scheduler.pool")
application = context.applicationId
print(json.dumps([is_shared(context), total.value, sorted(workers), pool, application]))
context.stop()
"""


def test_an_attached_process_has_its_own_workers_and_leaves_spark_running(spark_context: Any) -> None:
    environment = {**os.environ, **list_gateway_variables(spark_context), PROGRAM: "a program"}
    attached = subprocess.run(
        [sys.executable, "-c", ATTACHED], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert attached.returncode == 0, attached.stderr
    expected = [True, 45, [["a program", sys.executable]], "a program", spark_context.applicationId]
    assert json.loads(attached.stdout.splitlines()[-1]) == expected
    assert spark_context.parallelize(range(4), 2).map(lambda n: os.environ.get(PROGRAM)).distinct().collect() == [None]
