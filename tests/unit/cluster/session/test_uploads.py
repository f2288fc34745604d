"""Uploaded programs and their arguments."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from millstream.cluster.session import uploads
from millstream.cluster.session.arguments import BadArguments, parse_arguments, resolve_paths
from millstream.cluster.session.uploads import BadUpload, check_name, unpack


def archive(**files: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        for name, text in files.items():
            made.writestr(name, text)
    return buffer.getvalue()


@pytest.mark.parametrize("name", ["../../etc/job.py", "C:\\jobs\\job.py", "job.py"])
def test_a_name_is_a_plain_file_name(name: str) -> None:
    assert check_name(name) == "job.py"


@pytest.mark.parametrize("name", ["job.jar", "job.sh", "..", "", "a\0.py", "x" * 300 + ".py"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(BadUpload):
        check_name(name)


@pytest.mark.parametrize("member", ["../outside.py", "/outside.py", "a/../../outside.py"])
def test_an_archive_stays_in_its_directory(member: str, tmp_path: Path) -> None:
    with pytest.raises(BadUpload, match="outside"):
        unpack("p.zip", archive(**{"good.py": "", member: ""}), tmp_path / "in")
    assert list((tmp_path / "in").iterdir()) == []


def test_an_archive_is_bounded_and_readable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "_MOST_EXTRACTED", 10)
    with pytest.raises(BadUpload, match="more than"):
        unpack("p.zip", archive(**{"bomb.py": "0" * 100}), tmp_path)
    with pytest.raises(BadUpload, match="not a zip archive"):
        unpack("p.zip", b"no archive", tmp_path)


def test_arguments_are_those_of_flinks_python_driver(tmp_path: Path) -> None:
    unpack("p.zip", archive(**{"job.py": "", "lib/a.py": "", "env.zip": ""}), tmp_path)
    words = ["-py", "job.py", "-pyfs", "lib,job.py", "-pyarch", "env.zip#env", "--input", "-py", "x"]
    program = resolve_paths(parse_arguments(words, "p.zip"), tmp_path)
    assert program.file == str(tmp_path / "job.py")
    assert program.arguments == ("--input", "-py", "x")
    assert program.settings == {
        "python.files": f"{tmp_path / 'lib'},{tmp_path / 'job.py'}",
        "python.archives": f"{tmp_path / 'env.zip'}#env",
    }
    assert parse_arguments(["1"], "job.py").file == "job.py"
    assert parse_arguments(["-pym", "a.b"], "p.zip").module == "a.b"


@pytest.mark.parametrize("words", [[], ["-py"], ["-py", "a.py", "-pym", "a"], ["-py", "../up.py"], ["-py", "no.py"]])
def test_arguments_that_name_no_program_are_refused(words: list[str], tmp_path: Path) -> None:
    with pytest.raises(BadArguments):
        resolve_paths(parse_arguments(words, "p.zip"), tmp_path)
