"""The first process of a container: a command, or an executor of Spark on Kubernetes.

Kubernetes starts executors with the word `executor` and their settings in environment variables. Spark's own image has
a script for this, which is not part of the package pyspark."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark

_BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"


def executor_command(environment: Mapping[str, str]) -> list[str]:
    """Return the command of an executor."""
    numbered = (re.fullmatch(r"SPARK_JAVA_OPT_(\d+)", name) for name in environment)
    java_options = [environment[name[0]] for name in sorted(filter(None, numbered), key=lambda name: int(name[1]))]
    memory = environment["SPARK_EXECUTOR_MEMORY"]
    settings = {
        "--driver-url": "SPARK_DRIVER_URL",
        "--executor-id": "SPARK_EXECUTOR_ID",
        "--cores": "SPARK_EXECUTOR_CORES",
        "--app-id": "SPARK_APPLICATION_ID",
        "--hostname": "SPARK_EXECUTOR_POD_IP",
        "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
        "--podName": "SPARK_EXECUTOR_POD_NAME",
    }
    jars = str(Path(pyspark.__path__[0], "jars", "*"))
    command = ["java", *java_options, f"-Xms{memory}", f"-Xmx{memory}", "-cp", jars, _BACKEND]
    return command + [text for option, name in settings.items() for text in (option, environment[name])]


def main() -> None:
    """Replace this process by the command of the container."""
    command = executor_command(os.environ) if sys.argv[1:2] == ["executor"] else sys.argv[1:]
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
