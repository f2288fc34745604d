"""Only the owner can read the files that a job keeps on disk; output files have the permissions of the umask."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from millstream.common import Configuration, Encoder, Types
from millstream.connector.sink import WriterContext
from millstream.connectors.kafka.messages import Messages
from millstream.connectors.kafka.staging import Staging
from millstream.connectors.receiver.log import SegmentedLog
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.file_system import FileSink
from millstream.files.access import UnknownFileAccess, set_file_access
from millstream.files.local import LocalFileSystem


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    """The umask of most machines, and the default access after the test."""
    before = os.umask(0o022)
    yield
    os.umask(before)
    set_file_access("owner")


def modes(root: Path) -> dict[str, set[int]]:
    """The modes of all files and of all directories below a directory."""
    found: dict[str, set[int]] = {"files": set(), "directories": set()}
    for path in root.rglob("*"):
        found["directories" if path.is_dir() else "files"].add(stat.S_IMODE(path.stat().st_mode))
    return found


def run(tmp_path: Path, **options: str) -> dict[str, set[int]]:
    """Run a job that checkpoints and writes files; the modes in its checkpoint directory while it ran."""
    settings = {
        "execution.checkpointing.interval": "1 ms",
        "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
        "millstream.epoch.max-records": "5",
        **options,
    }
    (tmp_path / "checkpoints").mkdir()
    configuration = Configuration()
    for key, value in settings.items():
        configuration.set_string(key, value)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    found: dict[str, set[int]] = {"files": set(), "directories": set()}

    def look(_: object) -> None:
        for kind, seen in modes(tmp_path / "checkpoints").items():
            found[kind] |= seen

    env.register_listener(look)
    numbers = env.from_collection(list(range(40)), type_info=Types.LONG())
    sink = FileSink.for_row_format(str(tmp_path / "output"), Encoder.simple_string_encoder()).build()
    numbers.key_by(lambda n: n % 3).map(str, output_type=Types.STRING()).sink_to(sink)
    env.execute()
    return found


def test_checkpoints_are_private_and_output_follows_the_umask(tmp_path: Path, inline_engine: None) -> None:
    assert run(tmp_path) == {"files": {0o600}, "directories": {0o700}}
    assert modes(tmp_path / "output")["files"] == {0o644}
    assert stat.S_IMODE((tmp_path / "output").stat().st_mode) == 0o755


@pytest.mark.parametrize(("access", "file", "directory"), [("group", 0o640, 0o750), ("umask", 0o644, 0o755)])
def test_access_can_be_widened(tmp_path: Path, inline_engine: None, access: str, file: int, directory: int) -> None:
    assert run(tmp_path, **{"millstream.files.access": access}) == {"files": {file}, "directories": {directory}}


def test_an_unknown_access_value_is_refused() -> None:
    with pytest.raises(UnknownFileAccess, match="owner, group, umask, not to 'world'"):
        set_file_access("world")


def test_received_records_are_private(tmp_path: Path) -> None:
    log = SegmentedLog(str(tmp_path / "received/log"), 1000)
    log.append(b"card number")
    log.finish()
    log.close()
    assert modes(tmp_path / "received") == {"files": {0o600}, "directories": {0o700}}


def test_staged_messages_are_private(tmp_path: Path) -> None:
    file = Staging(str(tmp_path / "staged")).create(WriterContext("j", "s", 0, 1, 1, "0", 0), "")
    file.append(Messages("t", pa.array([b"card number"])))
    file.finish()
    assert modes(tmp_path) == {"files": {0o600}, "directories": {0o700}}


def test_staged_output_is_hidden(tmp_path: Path) -> None:
    LocalFileSystem(private=False).make_private_dir(str(tmp_path / "output/.staging"))
    assert stat.S_IMODE((tmp_path / "output").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "output/.staging").stat().st_mode) == 0o700
