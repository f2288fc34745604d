"""Flink's own command line, from Maven Central."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from millstream.testing.maven import java, retrieve_cached

VERSION = "2.3.0"
Command = Callable[..., subprocess.CompletedProcess[str]]


def create_command(directory: Path, address: str, **variables: str) -> Command:
    """Return a function that runs `flink ACTION -m ADDRESS ARGUMENTS`; its configuration is in the directory."""
    jars = retrieve_cached(f"flink-clients-{VERSION}", ("org.apache.flink", "flink-clients", VERSION))
    (directory / "conf").mkdir()
    (directory / "conf" / "config.yaml").write_text("rest.retry.max-attempts: 2\nrest.retry.delay: 1 s\n")
    opened = ("java.lang", "java.util")  # as in the configuration that Flink comes with
    command = [java(), "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*"]
    command[1:1] = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in opened]
    command.append("org.apache.flink.client.cli.CliFrontend")

    def run(action: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, action, "-m", address.removeprefix("http://"), *arguments],
            env=os.environ | {"FLINK_CONF_DIR": str(directory / "conf"), **variables},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run
