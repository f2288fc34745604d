"""Which versions of Spark, Java and Python go together."""

from __future__ import annotations

import importlib.metadata
import tomllib
from pathlib import Path

import pytest

from millstream.engine.spark.java import JavaNotFound, find_java
from millstream.engine.spark.settings import SparkSettingRefused, refuse_connect
from millstream.engine.spark.versions import (
    SUPPORTED,
    SparkVersionRefused,
    find_installed_version,
    refuse_unsupported,
    release,
)

REPOSITORY = Path(__file__).parents[2]


def program(folder: Path, version: str) -> dict[str, str]:
    """The environment of a machine whose only Java has this version."""
    folder.mkdir()
    java = folder / "java"
    java.write_text(f'#!/bin/sh\necho "    java.version = {version}" >&2\n')
    java.chmod(0o755)
    return {"PATH": str(folder), "HOME": str(folder)}


def test_the_supported_versions_are_those_of_the_package() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"pyspark{SUPPORTED}" in project["dependencies"]


def test_the_installed_version_is_known_without_importing_it() -> None:
    assert find_installed_version() == importlib.metadata.version("pyspark")


@pytest.mark.parametrize(
    ("version", "numbers"), [("3.5.6", (3, 5)), ("3.5.4-amzn-0", (3, 5)), ("4.1.0.dev2", (4, 1)), ("latest", (0, 0))]
)
def test_the_version_of_a_vendor_is_parsed(version: str, numbers: tuple[int, int]) -> None:
    assert release(version) == numbers


@pytest.mark.parametrize(
    ("version", "python", "reason"),
    [
        ("3.4.4", (3, 11), ">=3.5,<5"),
        ("5.0.0", (3, 11), ">=3.5,<5"),
        ("3.5.6", (3, 12), "runs on Python 3.11 and older"),
        ("4.0.1", (3, 14), "runs on Python 3.13 and older"),
    ],
)
def test_a_spark_that_cannot_run_is_refused(version: str, python: tuple[int, int], reason: str) -> None:
    with pytest.raises(SparkVersionRefused, match=reason):
        refuse_unsupported(version, python)


@pytest.mark.parametrize(("version", "python"), [("3.5.0", (3, 11)), ("4.0.1", (3, 13)), ("4.3.0", (3, 12))])
def test_a_spark_that_can_run_is_accepted(version: str, python: tuple[int, int]) -> None:
    refuse_unsupported(version, python)


@pytest.mark.parametrize(
    ("spark", "java"),
    [("3.5.6", "1.8.0_292"), ("3.5.6", "11.0.2"), ("3.5.6", "17.0.1"), ("4.0.1", "17.0.1"), ("4.3.0", "25")],
)
def test_a_java_that_spark_runs_on_is_found(spark: str, java: str, tmp_path: Path) -> None:
    assert find_java(program(tmp_path / "bin", java), spark).version == java


@pytest.mark.parametrize(
    ("spark", "java"), [("3.5.6", "1.7.0"), ("3.5.6", "21.0.1"), ("4.0.1", "11.0.2"), ("4.1.0", "25")]
)
def test_a_java_that_spark_does_not_run_on_is_refused_by_both_names(spark: str, java: str, tmp_path: Path) -> None:
    with pytest.raises(JavaNotFound, match=rf"spark {spark}, which needs java .*java {java}"):
        find_java(program(tmp_path / "bin", java), spark)


@pytest.mark.parametrize("environment", [{"SPARK_REMOTE": "sc://host:15002"}, {"SPARK_CONNECT_MODE_ENABLED": "1"}])
def test_a_client_of_spark_connect_is_refused_immediately(environment: dict[str, str]) -> None:
    with pytest.raises(SparkSettingRefused, match="Spark Connect has no RDDs"):
        refuse_connect(environment)
    refuse_connect({})
