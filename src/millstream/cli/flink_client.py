"""`millstream-python`: what `flink run -pyclientexec millstream-python -py job.py` starts to run a program.

Promises: the program runs in the session cluster that Flink's command line addresses, with the options of the command
line. Standard output and the exit code are those of `millstream run -m HOST:PORT`.
Does not know: how programs are packed and submitted.

Flink's command line starts the command as a Python interpreter, `millstream-python -u job.py ARGUMENTS`, and answers
questions about its configuration on a Py4J gateway, whose port is in the environment."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from millstream import options
from millstream.cli.cluster_address import connect
from millstream.cli.submission import submit_program
from millstream.errors import MillstreamError, UserError

PORT = "PYFLINK_GATEWAY_PORT"
_ATTACHED = "execution.attached"
_FORWARDED = (
    "parallelism.",
    "pipeline.",
    "execution.",
    "state.",
    "restart-strategy",
    "table.",
    "python.",
    "millstream.",
)
_OF_JAVA = ("pipeline.jars", "pipeline.classpaths", "execution.target", _ATTACHED, "python.client.executable")
_FILES = (options.PYTHON_FILES.key, options.PYTHON_REQUIREMENTS.key, options.PYTHON_ARCHIVES.key)


class NotStartedByFlink(UserError):
    """The command was not started by Flink's command line."""

    def __init__(self) -> None:
        super().__init__(
            "millstream-python is started by Flink's command line",
            hint="flink run -m HOST:PORT -pyclientexec millstream-python -py job.py; without Flink: millstream run -d",
        )


def main() -> int:
    """Run the command, and return its exit code."""
    try:
        if PORT not in os.environ:
            raise NotStartedByFlink
        path, module, arguments = parse_command(sys.argv[1:])
        settings = read_settings(int(os.environ[PORT]))
        host, port = settings.get(options.REST_ADDRESS.key, "localhost"), settings.get(options.REST_PORT.key, "8081")
        cluster = connect(argparse.Namespace(jobmanager=f"{host}:{port}", token_file=None))
        is_detached = settings.get(_ATTACHED, "true").lower() == "false"
        submit_program(cluster, path, module, arguments, select_settings(settings), detached=is_detached)
    except MillstreamError as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


def parse_command(words: Sequence[str]) -> tuple[str | None, str | None, list[str]]:
    """Return the file or the module of the program, and its arguments, from the words for an interpreter."""
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] != "-m":
        rest.pop(0)  # an option such as -u
    if rest[:1] == ["-m"] and len(rest) > 1:
        return None, rest[1], rest[2:]
    if not rest or rest == ["-m"]:
        raise NotStartedByFlink
    return rest[0], None, rest[1:]


def read_settings(port: int) -> dict[str, str]:
    """Return the configuration of Flink's command line."""
    from py4j.java_gateway import GatewayParameters, JavaGateway

    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
    try:
        environment = gateway.jvm.org.apache.flink.streaming.api.environment.StreamExecutionEnvironment
        settings = environment.getExecutionEnvironment().getConfiguration().toMap()
        return {str(key): str(value) for key, value in settings.items()}
    finally:
        gateway.close()


def select_settings(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the options that are about the program, with files as paths."""
    selected = {
        key: value for key, value in settings.items() if key.startswith(_FORWARDED) and not key.startswith(_OF_JAVA)
    }
    for key in _FILES:
        if key in selected:
            selected[key] = ",".join(_to_path(item) for item in selected[key].split(","))
    return selected


def _to_path(item: str) -> str:
    name, hash_sign, target = item.strip().partition("#")
    if name.startswith("file:"):
        name = unquote(urlsplit(name).path)
    return f"{Path(name)}{hash_sign}{target}"
