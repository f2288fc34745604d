"""The option `-m HOST:PORT` of commands that talk to a cluster, and the connection that it names.

Promises: without the option, `rest.address` and `rest.port` of the configuration file name the cluster; the token is
read from the file that --token-file or the configuration names, or from MILLSTREAM_REST_TOKEN.
Does not know: what commands request."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from millstream import options
from millstream.client import local
from millstream.client.remote import RemoteCluster
from millstream.config.configuration import Configuration
from millstream.errors import UserError

TOKEN = "MILLSTREAM_REST_TOKEN"


class NoToken(UserError):
    """The file of the token cannot be read."""

    def __init__(self, path: str, problem: OSError) -> None:
        super().__init__(
            f"the token file {path} cannot be read: {(problem.strerror or str(problem)).lower()}",
            hint="name the file that the cluster was started with: --token-file",
        )


def add_address(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Declare the options that name the cluster."""
    add = parser.add_argument
    return [
        add(
            "-m",
            "--jobmanager",
            metavar="HOST:PORT",
            help="the REST address, or its URL with https:// (default: localhost:8081)",
        ),
        add("--token-file", metavar="FILE", help="the file with the token of the cluster, if it has one"),
    ]


def connect(args: argparse.Namespace) -> RemoteCluster:
    """Return the client of the cluster that the arguments or the configuration name."""
    configuration = Configuration.from_dict(local.defaults())
    address = args.jobmanager or f"{configuration.get(options.REST_ADDRESS)}:{configuration.get(options.REST_PORT)}"
    tls, ca_file = configuration.get(options.REST_TLS), configuration.get(options.REST_TLS_CA)
    return RemoteCluster(address, read_token(args, configuration), tls=tls, ca_file=ca_file)


def read_token(args: argparse.Namespace, configuration: Configuration) -> str | None:
    """Return the token that the arguments, the configuration or the environment name.

    Raises:
        NoToken: Its file cannot be read.

    """
    path = args.token_file or configuration.get(options.REST_TOKEN_FILE)
    if path is None:
        return os.environ.get(TOKEN)
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError as problem:
        raise NoToken(path, problem) from problem
