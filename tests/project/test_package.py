"""The sdist and the wheel are complete: the wheel is built from the sdist and works in an environment of its own."""

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import millstream_chaos
from millstream import __version__

REPOSITORY = Path(__file__).parent.parent.parent
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CHAOS = REPOSITORY / "packages" / "millstream-chaos"
CHAOS_PROJECT = tomllib.loads((CHAOS / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PUBLIC = ("common", "datastream", "table", "cep", "state_processor", "testing", "metrics")
PROGRAM = """
from millstream.client.job_client import JobClient
from millstream.client.local import LocalHandle
from millstream.cluster import entrypoint
from millstream.datastream import StreamExecutionEnvironment
from millstream.testing.inline_engine import InlineEngine

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1).from_collection([1, 2]).map(lambda number: number + 1).print()
running = entrypoint.submit(env._graph(), env._configuration, "job", engine=InlineEngine())
JobClient(LocalHandle(running)).get_job_execution_result().result(30)
print(millstream.__file__)
"""
LINK = re.compile(r"\]\(([^)]+)\)|^\[[^\]]+\]: (\S+)$", re.MULTILINE)


def run(*command: object, cwd: Path | None = None) -> str:
    """What a command prints; PYTHONPATH would show it the sources instead of the installed package."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def build(target: str, source: Path, into: Path) -> Path:
    run(sys.executable, "-m", "hatchling", "build", "-t", target, "-d", into, cwd=source)
    (built,) = into.iterdir()
    return built


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """The source distribution, unpacked."""
    archive = build("sdist", REPOSITORY, tmp_path_factory.mktemp("sdist"))
    into = tmp_path_factory.mktemp("source")
    with tarfile.open(archive) as packed:
        packed.extractall(into, filter="data")
    return into / f"millstream-{__version__}"


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory):
    return build("wheel", sdist, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def chaos_wheel(sdist, tmp_path_factory):
    """The wheel of the fault tests, built from their own source distribution."""
    archive = build("sdist", sdist / "packages" / "millstream-chaos", tmp_path_factory.mktemp("chaos-sdist"))
    into = tmp_path_factory.mktemp("chaos-source")
    with tarfile.open(archive) as packed:
        packed.extractall(into, filter="data")
    return build("wheel", into / f"millstream_chaos-{__version__}", tmp_path_factory.mktemp("chaos-wheel"))


def new_environment(home: Path, *wheels: Path) -> Path:
    """The scripts of a new environment that has the wheels and, on its path, the dependencies of this one."""
    run(sys.executable, "-m", "venv", "--without-pip", home)
    python = home / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", *wheels)
    own = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"))
    # A folder that a .pth file names only gets onto the path; its own .pth files (an editable install) are not read.
    # The metadata of other packages would show the entry points of this environment, so they are linked one by one.
    dependencies = home / "dependencies"
    dependencies.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.startswith("millstream"):
            (dependencies / path.name).symlink_to(path)
    (own / "dependencies.pth").write_text(str(dependencies), encoding="utf-8")
    return home / "bin"


@pytest.fixture(scope="module")
def bin_folder(wheel, tmp_path_factory):
    return new_environment(tmp_path_factory.mktemp("environment"), wheel)


@pytest.fixture(scope="module")
def chaos_bin_folder(wheel, chaos_wheel, tmp_path_factory):
    return new_environment(tmp_path_factory.mktemp("chaos-environment"), wheel, chaos_wheel)


def package_files(folder: Path) -> set[str]:
    paths = (folder / "src").rglob("*")
    return {path.relative_to(folder / "src").as_posix() for path in paths if path.is_file() and path.suffix != ".pyc"}


def test_the_sdist_has_what_a_reader_and_a_packager_need(sdist):
    for name in (
        "CHANGELOG.md",
        "README.md",
        "LICENSE",
        "NOTICE",
        "Makefile",
        "requirements-dev.lock",
        "pyproject.toml",
    ):
        assert (sdist / name).is_file(), name
    for name in (
        "docs/index.md",
        "examples/word_count.py",
        "tests/project/test_package.py",
        "benchmarks/RESULTS.md",
        "packages/millstream-chaos/pyproject.toml",
    ):
        assert (sdist / name).is_file(), name


def test_the_wheel_has_every_file_of_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as packed:
        names = {name for name in packed.namelist() if ".dist-info/" not in name}
    assert names == package_files(REPOSITORY)
    assert "millstream/py.typed" in names


def test_the_wheel_of_the_fault_tests_has_every_file_of_their_package_and_nothing_else(chaos_wheel):
    with zipfile.ZipFile(chaos_wheel) as packed:
        names = {name for name in packed.namelist() if ".dist-info/" not in name}
    assert names == package_files(CHAOS)
    assert "millstream_chaos/py.typed" in names


def test_the_fault_tests_have_the_version_of_millstream():
    assert millstream_chaos.__version__ == __version__
    (own,) = [needed for needed in CHAOS_PROJECT["dependencies"] if needed.startswith("millstream")]
    assert own.endswith(f"=={__version__}")
    assert PROJECT["optional-dependencies"]["chaos"] == [f"millstream-chaos=={__version__}"]
    for name in ("LICENSE", "NOTICE"):
        assert (CHAOS / name).read_bytes() == (REPOSITORY / name).read_bytes()


def test_without_the_fault_tests_the_command_says_how_to_install_them(bin_folder):
    words = [bin_folder / "millstream", "chaos", "--seed", "1", "clocks"]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr == ("millstream: the command 'chaos' is not installed; hint: pip install 'millstream[chaos]'\n")


def test_the_installed_command_plays_a_case(chaos_bin_folder, tmp_path):
    printed = run(chaos_bin_folder / "millstream", "chaos", "clocks", "--size", "ci", "--steps", "0:1", cwd=tmp_path)
    assert printed.splitlines()[-1].strip() == "all held"


def test_the_installed_command_prints_its_version(bin_folder):
    assert run(bin_folder / "millstream", "--version") == f"millstream {__version__}"


def test_the_installed_package_runs_a_program(bin_folder, tmp_path):
    program = tmp_path / "program.py"
    imports = "".join(f"import millstream.{name}\n" for name in PUBLIC)
    program.write_text(imports + PROGRAM, encoding="utf-8")
    *printed, origin = run(bin_folder / "python", program).splitlines()
    assert printed == ["2", "3"]
    assert Path(origin).is_relative_to(bin_folder.parent)


def test_the_extra_all_has_every_extra():
    extras = PROJECT["optional-dependencies"]

    def names(extra: str) -> set[str]:
        included = re.match(r"millstream\[(.*)\]$", extras[extra][0])
        return {extra}.union(*(names(name) for name in included[1].split(","))) if included else {extra}

    # The fault tests bring servers (S3, PostgreSQL) that no program needs.
    assert names("all") == set(extras) - {"chaos"}


def test_the_changelog_has_this_version_with_a_date():
    changelog = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## {re.escape(__version__)} - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE)


def test_links_of_the_readme_work_on_a_package_index():
    """The index shows the README without the repository around it, so links to files must be absolute."""
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    targets = [one or other for one, other in LINK.findall(text)]
    assert len(targets) > 10
    repository = PROJECT["urls"]["Repository"]
    for target in targets:
        assert target.startswith(("https://", "#")), target
        if target.startswith(f"{repository}/"):
            branch, path = re.fullmatch(r"(?:blob|tree)/(\w+)/(.+)", target.removeprefix(f"{repository}/")).groups()
            assert branch == "main"
            assert (REPOSITORY / path.partition("#")[0]).exists(), target
