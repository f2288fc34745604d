"""The PostgreSQL server of tests: where it comes from, and that it ends with the process that started it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from millstream.testing import postgres
from millstream.testing.postgres import find_packaged_programs, find_programs, postgres_server

_STARTER = """
import time
from millstream.testing.postgres import postgres_server
with postgres_server() as server:
    print(server._pid, server._directory, flush=True)
    time.sleep(600)
"""


def test_the_server_on_the_path_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for program in ("initdb", "postgres"):
        (tmp_path / program).write_text("#!/bin/sh")
        (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_programs() == str(tmp_path)
    monkeypatch.setenv("PATH", os.devnull)
    assert find_programs() != str(tmp_path)


def test_the_server_of_the_package_replicates_and_prepares_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{find_packaged_programs()[0]}:{os.defpath}")
    with postgres_server() as server, server.connect() as session:
        session.execute("CREATE TABLE t (id int PRIMARY KEY)")
        session.execute("CREATE PUBLICATION p FOR ALL TABLES")
        session.execute("SELECT pg_create_logical_replication_slot('s', 'pgoutput')")
        session.execute("BEGIN")
        session.execute("INSERT INTO t VALUES (1)")
        session.execute("PREPARE TRANSACTION 'x'")
        server.restart(kill=True)
        server.execute("COMMIT PREPARED 'x'")
        changes = server.execute(
            "SELECT get_byte(data, 0) FROM pg_logical_slot_get_binary_changes('s', NULL, NULL,"
            " 'proto_version', '1', 'publication_names', 'p')"
        )
        assert [chr(tag) for (tag,) in changes] == ["B", "R", "I", "C"]


def test_the_programs_of_a_closed_directory_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root runs the server as another user")
    installed = tmp_path / "postgres"
    (installed / "bin").mkdir(parents=True)
    for program in ("initdb", "postgres"):
        (installed / "bin" / program).write_text("#!/bin/sh")
        (installed / "bin" / program).chmod(0o755)
    installed.chmod(0o700)
    monkeypatch.setenv("PATH", str(installed / "bin"))
    (tmp_path / "server").mkdir()
    assert postgres._find_programs_for_others(str(tmp_path / "server")) == str(
        tmp_path / "server" / "installed" / "bin"
    )
    assert (tmp_path / "server" / "installed" / "bin" / "postgres").exists()


def test_the_server_ends_when_its_parent_process_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", _STARTER], stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        pid, directory = starter.stdout.readline().split()
        starter.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 20
    while Path(f"{directory}/data/postmaster.pid").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"{directory}/data/postmaster.pid").exists(), f"process {pid} is still there"
    shutil.rmtree(directory)
