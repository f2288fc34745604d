from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from millstream import sql_options
from millstream.cli import gateway


def test_options_of_the_gateway_come_from_the_file_and_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.yaml").write_text(
        "sql-gateway: {session.max-num: 7, endpoint.rest.port: 9000}\nparallelism.default: 3\n"
    )
    monkeypatch.setenv("MILLSTREAM_CONF_DIR", str(tmp_path))
    parser = argparse.ArgumentParser()
    gateway.add_parser(parser.add_subparsers())
    configuration = gateway.read_configuration(
        parser.parse_args(["gateway", "start", "-D", "sql-gateway.endpoint.rest.port=9001"])
    )
    assert configuration.get(sql_options.GATEWAY_MAX_SESSIONS) == 7
    assert configuration.get(sql_options.GATEWAY_PORT) == 9001
