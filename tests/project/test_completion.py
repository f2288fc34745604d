"""Completion in real shells; zsh and fish where they are installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from millstream.cli.main import main


def complete(shell: str, line: str, capsys: pytest.CaptureFixture[str], directory: Path) -> list[str]:
    """Return what a shell offers at the end of a line."""
    assert main(["completion", shell]) == 0
    script = directory / f"millstream.{shell}"
    script.write_text(capsys.readouterr().out)
    words = line.split(" ")
    if shell == "bash":
        array = " ".join(f"'{word}'" for word in words)
        code = (
            f"source {script}; COMP_WORDS=({array}); COMP_CWORD={len(words) - 1}; _millstream; echo ${{COMPREPLY[@]}}"
        )
    elif shell == "fish":
        code = f"source {script}; complete -C '{line}'"
    else:
        array = " ".join(f"'{word}'" for word in words)
        code = "compdef() {}; compadd() { shift; print -l -- $@ }; _files() {}; "
        code += f"source {script}; words=({array}); CURRENT={len(words)}; _millstream"
    done = subprocess.run([shell, "-c", code], capture_output=True, text=True, check=True, timeout=60, cwd=directory)
    assert not done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_commands_actions_and_options(shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert {"run", "savepoint", "ui", "completion"} <= set(complete(shell, "millstream ", capsys, tmp_path))
    assert {"start", "stop", "status"} <= set(complete(shell, "millstream cluster ", capsys, tmp_path))
    options = complete(shell, "millstream cluster start --", capsys, tmp_path)
    assert {"--slots", "--detached"} <= set(options)
    assert "--drain" not in options
    assert "--drain" in complete(shell, "millstream stop --", capsys, tmp_path)
