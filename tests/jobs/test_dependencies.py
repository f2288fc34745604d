"""Files a program brings along reach its functions: modules, archives, packages and cached files."""

from __future__ import annotations

import os
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from millstream.common import Types
from millstream.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment
from millstream.engine.dependencies import extract
from millstream.errors import UserError


def imported(name: str) -> Any:
    """A function that imports a module where it runs, and calls its `answer`."""

    def call(value: int) -> str:
        return str(__import__(name).answer(value))

    return call


def collected(env: StreamExecutionEnvironment, function: Any) -> list[Any]:
    return list(env.from_collection([1, 2], Types.INT()).map(function, Types.STRING()).execute_and_collect())


def module(path: Path, text: str = "file") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"def answer(value):\n    return f'{text} {{value}}'\n")
    return path


def test_a_python_file_can_be_imported(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    env.add_python_file(str(module(tmp_path / "brought_file.py")))
    assert collected(env, imported("brought_file")) == ["file 1", "file 2"]


def test_the_next_job_does_not_see_the_modules_of_the_last(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    for text in ("first", "second"):
        other = StreamExecutionEnvironment.get_execution_environment()
        other.add_python_file(str(module(tmp_path / text / "brought_twice.py", text)))
        assert collected(other, imported("brought_twice")) == [f"{text} 1", f"{text} 2"]
    with pytest.raises(UserError, match="No module named 'brought_twice'"):
        collected(env, imported("brought_twice"))


def test_the_last_of_two_files_with_one_name_is_imported(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    for text in ("first", "second"):
        env.add_python_file(str(module(tmp_path / text / "brought_again.py", text)))
    assert collected(env, imported("brought_again")) == ["second 1", "second 2"]


def test_packages_directories_and_zips_can_be_imported(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    env.add_python_file(str(module(tmp_path / "brought_package" / "__init__.py", "package").parent))
    env.add_python_file(str(module(tmp_path / "folder" / "brought_inner.py", "folder").parent))
    with zipfile.ZipFile(tmp_path / "modules.zip", "w") as zipped:
        zipped.write(module(tmp_path / "brought_zipped.py", "zipped"), "brought_zipped.py")
    env.add_python_file(str(tmp_path / "modules.zip"))
    (tmp_path / "brought_zipped.py").unlink()

    def all_three(value: int) -> str:
        return ", ".join(imported(f"brought_{name}")(value) for name in ("package", "inner", "zipped"))

    assert collected(env, all_three)[0] == "package 1, folder 1, zipped 1"


@pytest.mark.parametrize("target", [None, "data"])
@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_an_archive_is_found_by_its_relative_path(
    env: StreamExecutionEnvironment, tmp_path: Path, kind: str, target: str | None
) -> None:
    (tmp_path / "words.txt").write_text("hello")
    archive = tmp_path / f"words.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(archive, "w") as zipped:
            zipped.write(tmp_path / "words.txt", "inner/words.txt")
    else:
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(tmp_path / "words.txt", "inner/words.txt")
    env.add_python_archive(str(archive), target)
    found = f"{target or archive.name}/inner/words.txt"
    before = Path.cwd()
    assert collected(env, lambda _: Path(found).read_text()) == ["hello", "hello"]
    assert Path.cwd() == before


def test_archives_are_extracted_inside_their_directory_only(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as zipped:
        zipped.writestr("../../escaped.txt", "x")
    extract(tmp_path / "evil.zip", tmp_path / "deep" / "inside")
    with tarfile.open(tmp_path / "evil.tar", "w") as tar:
        tar.add(tmp_path / "evil.zip", "../escaped.txt")
    with pytest.raises(tarfile.OutsideDestinationError):
        extract(tmp_path / "evil.tar", tmp_path / "deep" / "inside")
    assert not (tmp_path / "escaped.txt").exists()
    assert not (tmp_path / "deep" / "escaped.txt").exists()


class Reads(MapFunction):
    def __init__(self, name: str) -> None:
        self.name = name

    def open(self, runtime_context: RuntimeContext) -> None:
        self.file = runtime_context.get_distributed_cache().get_file(self.name)

    def map(self, value: int) -> str:
        if self.file.is_dir():
            return ",".join(sorted(each.name for each in self.file.iterdir()))
        return f"{self.file.read_text()} {os.access(self.file, os.X_OK)}"


def test_cached_files_are_found_by_name(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    plain = tmp_path / "it's; a, file: here.txt"
    plain.write_text("content")
    env.register_cached_file(plain.as_uri(), "plain")
    env.register_cached_file(str(plain), "to run", executable=True)
    env.register_cached_file(str(tmp_path), "folder")
    assert collected(env, Reads("plain"))[0] == "content False"
    assert collected(env, Reads("to run"))[0] == "content True"
    assert collected(env, Reads("folder"))[0] == plain.name
    with pytest.raises(
        UserError, match="no cached file is registered as 'other'; registered files: folder, plain, to run"
    ):
        collected(env, Reads("other"))
    with pytest.raises(UserError, match="registered as 'plain' already"):
        env.register_cached_file(str(plain), "plain")


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with one package, made by hand: a wheel is a zip with three files about itself."""
    directory = tmp_path_factory.mktemp("wheels")
    info = "brought_wheel-1.0.dist-info"
    with zipfile.ZipFile(directory / "brought_wheel-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("brought_wheel.py", "def answer(value):\n    return f'wheel {value}'\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: brought-wheel\nVersion: 1.0\n")
        about = "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        wheel.writestr(f"{info}/WHEEL", about)
        wheel.writestr(f"{info}/RECORD", f"brought_wheel.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return directory


def test_requirements_are_installed_from_the_cache_directory(
    env: StreamExecutionEnvironment, tmp_path: Path, wheels: Path
) -> None:
    (tmp_path / "requirements.txt").write_text("brought-wheel==1.0\n")
    env.set_python_requirements(str(tmp_path / "requirements.txt"), str(wheels))
    assert collected(env, imported("brought_wheel")) == ["wheel 1", "wheel 2"]


def test_requirements_that_cannot_be_installed_are_refused(
    env: StreamExecutionEnvironment, tmp_path: Path, wheels: Path
) -> None:
    (tmp_path / "requirements.txt").write_text("no-such-thing==9\n")
    env.set_python_requirements(str(tmp_path / "requirements.txt"), str(wheels))
    with pytest.raises(UserError, match=r"could not be installed: .*no-such-thing==9"):
        collected(env, str)


def test_missing_dependencies_are_refused_before_the_job_starts(
    env: StreamExecutionEnvironment, tmp_path: Path
) -> None:
    given: list[tuple[Any, str]] = [
        (lambda e: e.add_python_file("nowhere.py"), "the Python file 'nowhere.py' does not exist"),
        (lambda e: e.add_python_archive("nowhere.zip"), "the Python archive 'nowhere.zip' does not exist"),
        (lambda e: e.add_python_archive(__file__), "is not an archive"),
        (lambda e: e.set_python_requirements("nowhere.txt"), "the requirements file 'nowhere.txt' does not exist"),
        (lambda e: e.register_cached_file("hdfs://a/b", "n"), "is not on a local or mounted file system"),
    ]
    for prepare, message in given:
        fresh = StreamExecutionEnvironment.get_execution_environment()
        prepare(fresh)
        with pytest.raises(UserError, match=message):
            collected(fresh, str)


def test_a_python_inside_an_archive_is_refused(env: StreamExecutionEnvironment, tmp_path: Path) -> None:
    env.add_python_archive("env.zip", "myenv")
    env.set_python_executable("myenv/bin/python")
    with pytest.raises(UserError, match=r"inside the archive 'env\.zip'; hint: let Spark unpack it"):
        collected(env, str)


def test_jars_are_accepted_with_a_warning(env: StreamExecutionEnvironment, caplog: pytest.LogCaptureFixture) -> None:
    env.add_jars("file:///a.jar", "file:///b.jar")
    env.add_classpaths("file:///c")
    assert collected(env, str) == ["1", "2"]
    assert "option 'pipeline.jars' has no effect" in caplog.text
    assert env._configuration.to_dict()["pipeline.jars"] == "file:///a.jar;file:///b.jar"
