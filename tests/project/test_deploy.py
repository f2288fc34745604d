"""The files under deploy: their options exist, and a container starts what Kubernetes asks for."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
import yaml

from millstream.config.config_file import read_config_file
from millstream.config.configuration import Configuration
from millstream.option_keys import ignored_keys, unknown_keys

DEPLOY = Path(__file__).parents[2] / "deploy"


def entrypoint():
    spec = importlib.util.spec_from_file_location("entrypoint", DEPLOY / "entrypoint.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_an_executor_gets_the_settings_of_its_pod():
    environment = {
        "SPARK_JAVA_OPT_10": "-Dlast=1",
        "SPARK_JAVA_OPT_9": "-Dtext=two words",
        "SPARK_EXECUTOR_MEMORY": "512m",
        "SPARK_DRIVER_URL": "spark://driver:1",
        "SPARK_EXECUTOR_ID": "3",
        "SPARK_EXECUTOR_CORES": "2",
        "SPARK_APPLICATION_ID": "app",
        "SPARK_EXECUTOR_POD_IP": "10.0.0.3",
        "SPARK_RESOURCE_PROFILE_ID": "0",
        "SPARK_EXECUTOR_POD_NAME": "pod",
    }
    command = entrypoint().executor_command(environment)
    assert command[:6] == ["java", "-Dtext=two words", "-Dlast=1", "-Xms512m", "-Xmx512m", "-cp"]
    assert " ".join(command[8:]) == (
        "--driver-url spark://driver:1 --executor-id 3 --cores 2 --app-id app --hostname 10.0.0.3 "
        "--resourceProfileId 0 --podName pod"
    )


def check(keys):
    configuration = Configuration()
    for key, value in keys.items():
        configuration.set_string(key, value)
    assert "rest.bind-address" in keys
    assert unknown_keys(configuration) == []
    assert ignored_keys(configuration) == []


def test_the_configuration_of_the_image_has_known_keys():
    check(read_config_file(DEPLOY / "conf" / "config.yaml"))


def test_the_configuration_of_the_chart_has_known_keys():
    text = (DEPLOY / "helm" / "millstream" / "templates" / "config.yaml").read_text(encoding="utf-8")
    check(dict(re.findall(r"^    ([\w.-]+): (.+)", text, re.MULTILINE)))


@pytest.mark.parametrize(
    "path", ["docker-compose.yaml", "conf/config.yaml", "helm/millstream/Chart.yaml", "helm/millstream/values.yaml"]
)
def test_it_is_yaml(path):
    assert isinstance(yaml.safe_load((DEPLOY / path).read_text(encoding="utf-8")), dict)
