"""`millstream run` and `millstream info`, with programs that start no job."""

import json
from pathlib import Path

import pytest

from millstream.cli import main

DEFAULTS = (
    "import json, sys\nfrom millstream.client import local\nprint(json.dumps([local.defaults(), sys.argv[1:]]))\n"
)
PLANNED = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1] / "graph")!r})
from small_graphs import graph, sink, source
from millstream.client import local
from millstream.config.configuration import Configuration
print("a word of the program", *sys.argv[1:])
local.submit(graph(source(1, "Source: s"), sink(2, "Sink: out", 1)), Configuration(), "planned")
raise SystemExit("the program went on")
"""


@pytest.fixture
def program(tmp_path):
    def write(text: str) -> str:
        (tmp_path / "job.py").write_text(text)
        return str(tmp_path / "job.py")

    return write


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["-p", "4"], []),
        ([], ["-p", "4"]),
        ([], ["-p4"]),
        ([], ["--parallelism=4"]),
        (["-D", "parallelism.default=4"], []),
        ([], ["-Dparallelism.default=4"]),
        (["-D", "parallelism.default=9", "-p", "4"], []),
    ],
)
def test_options_are_before_the_program_or_directly_after_it(program, capsys, before, after):
    assert main(["run", *before, program(DEFAULTS), *after, "in.csv", "-p", "7"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"parallelism.default": "4"}, ["in.csv", "-p", "7"]]


def test_flinks_options_are_accepted(program, capsys):
    words = [
        "-s",
        "/chk-3",
        "-n",
        "--master",
        "local[2]",
        "-D",
        "a=b=c",
        "-py",
        program(DEFAULTS),
        "-p",
        "2",
        "--x",
        "1",
    ]
    assert main(["run", *words]) == 0
    settings, arguments = json.loads(capsys.readouterr().out)
    assert settings == {
        "a": "b=c",
        "parallelism.default": "2",
        "execution.state-recovery.path": "/chk-3",
        "execution.state-recovery.ignore-unclaimed-state": "true",
        "millstream.spark.master": "local[2]",
    }
    assert arguments == ["--x", "1"]


def test_arguments_of_a_module_need_no_separator(tmp_path, monkeypatch, capsys):
    (tmp_path / "program_of_a_module.py").write_text(DEFAULTS)
    monkeypatch.chdir(tmp_path)
    assert main(["run", "-pym", "program_of_a_module", "-p", "4", "--records", "7"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"parallelism.default": "4"}, ["--records", "7"]]


def test_two_dashes_begin_the_arguments_of_the_program(program, capsys):
    assert main(["run", program(DEFAULTS), "-n", "--", "-p", "7"]) == 0
    assert json.loads(capsys.readouterr().out)[1] == ["-p", "7"]


def test_an_error_of_the_program_begins_in_its_file(program, capsys):
    path = program(
        "def inner():\n    return {}['k']\n\n"
        "try:\n    inner()\nexcept KeyError as error:\n    raise ValueError('no') from error\n"
    )
    assert main(["run", path]) == 1
    error = capsys.readouterr().err
    assert "ValueError: no" in error
    assert "KeyError: 'k'" in error
    assert "runpy" not in error
    assert "millstream" not in error
    assert error.count(path) == 3


def test_an_error_of_millstream_shows_message_location_and_hint(program, capsys):
    path = program("from millstream.errors import UserError\n\nraise UserError('it is wrong', hint='mend it')\n")
    assert main(["run", path]) == 1
    shown = (
        "millstream: it is wrong\n  at {}, line 3: raise UserError('it is wrong', hint='mend it')\n  hint: mend it\n"
    )
    assert capsys.readouterr().err == shown.format(path)


def test_a_file_that_is_not_python_is_reported(program, capsys):
    assert main(["run", program("def (:\n")]) == 1
    error = capsys.readouterr().err
    assert "SyntaxError" in error
    assert "runpy" not in error


def test_ctrl_c_exits_with_130(program, capsys):
    assert main(["run", program("raise KeyboardInterrupt")]) == 130


def test_the_exit_code_of_the_program_is_kept(program):
    with pytest.raises(SystemExit, match="3"):
        main(["run", program("raise SystemExit(3)")])


def test_detached_submits_to_a_session_cluster_and_runs_nothing_here(program, capsys):
    assert main(["run", program(DEFAULTS), "-d", "--token-file", "/no/such/file"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "the token file /no/such/file cannot be read" in printed.err


@pytest.mark.parametrize("words", [["run"], ["info", "--json"], ["run", "no-such.py"]])
def test_a_missing_program_is_an_error(words, capsys):
    assert main(words) == 1
    assert capsys.readouterr().err.count("\n") <= 2


@pytest.mark.parametrize("words", [["-p", "0", "job.py"], ["-p", "two", "job.py"], ["-D", "key", "job.py"]])
def test_an_invalid_option_is_refused(words):
    with pytest.raises(SystemExit, match="2"):
        main(["run", *words])


def test_info_prints_only_the_plan_and_runs_no_job(program, capsys):
    assert main(["info", program(PLANNED), "x"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("job 'planned': 1 level, 1 vertex, 0 exchanges, 2 slots\n")
    assert printed.out.endswith("\nengine: Spark jobs, because millstream.engine is jobs\n")
    assert printed.err == "a word of the program x\n"


def test_info_as_json_mermaid_and_picture(program, tmp_path, capsys):
    assert main(["info", "--json", program(PLANNED)]) == 0
    assert [node["type"] for node in json.loads(capsys.readouterr().out)["nodes"]] == ["Source: s", "Sink: out"]
    assert main(["info", program(PLANNED), "--mermaid"]) == 0
    assert capsys.readouterr().out.startswith("flowchart LR\n")
    assert main(["info", program(PLANNED), "--svg", str(tmp_path / "plan.svg")]) == 0
    assert (tmp_path / "plan.svg").read_text().startswith("<svg ")


def test_info_reports_a_missing_job_and_an_unwritable_file(program, capsys):
    assert main(["info", program("pass")]) == 1
    assert "did not execute a job" in capsys.readouterr().err
    assert main(["info", program(PLANNED), "--svg", "/no/such/place.svg"]) == 1
    assert "cannot write /no/such/place.svg: no such file" in capsys.readouterr().err
    assert main(["info", program(PLANNED), "--svg", "a", "--json"]) == 1
