"""The configuration file."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.client import local
from millstream.config.config_file import DIRECTORY, BadConfigFile, config_file, read_config_file

NESTED = """
parallelism: {default: 4}
execution:
  checkpointing:
    interval: 10 s
    incremental: true
  checkpointing.dir: /data
pipeline.jars: [a, b]
empty:
"""


def write(directory: Path, text: str) -> Path:
    (directory / "config.yaml").write_text(text)
    return directory / "config.yaml"


def test_keys_may_be_nested_or_flat(tmp_path: Path) -> None:
    assert read_config_file(write(tmp_path, NESTED)) == {
        "parallelism.default": "4",
        "execution.checkpointing.interval": "10 s",
        "execution.checkpointing.incremental": "true",
        "execution.checkpointing.dir": "/data",
        "pipeline.jars": "a;b",
    }
    assert read_config_file(write(tmp_path, "")) == {}


@pytest.mark.parametrize("text", ["- a\n- b", "a: [", "!!python/object/apply:os.system [ls]"])
def test_an_invalid_file_is_refused_with_its_path(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadConfigFile, match=str(tmp_path)):
        read_config_file(write(tmp_path, text))


def test_where_the_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert config_file({}) is None
    with pytest.raises(BadConfigFile, match="no such file"):
        config_file({DIRECTORY: str(tmp_path)})
    (tmp_path / "conf").mkdir()
    write(tmp_path / "conf", "")
    assert config_file({}) == Path("conf/config.yaml")


def test_the_command_line_overrides_the_file_and_unknown_keys_are_logged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, "parallelism.default: 4\nexecution.checkpointing.intervall: 1 s\nrest.port: 8082")
    monkeypatch.setenv(DIRECTORY, str(tmp_path))
    monkeypatch.setitem(local._defaults, "parallelism.default", "2")
    for _ in range(2):
        assert local.defaults() == {"parallelism.default": "2", "rest.port": "8082"}
    (record,) = caplog.records
    assert "did you mean 'execution.checkpointing.interval'?" in record.getMessage()
