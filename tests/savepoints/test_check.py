"""`millstream savepoint check`: predicts what a program restores from a savepoint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from millstream.cli import main
from millstream.common import Types
from millstream.datastream.state import ListStateDescriptor, ValueStateDescriptor
from millstream.state_processor import SavepointWriter

JOB = """
from dataclasses import dataclass
from millstream.common import Types
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.functions import KeyedProcessFunction
from millstream.datastream.state import ListStateDescriptor, ValueStateDescriptor

class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        print("opened")
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.{count}()))
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.STRING()))

    def process_element(self, value, ctx):
        raise AssertionError("no record is to be seen")

env = StreamExecutionEnvironment.get_execution_environment()
{more}
env.from_collection([1, 2]).key_by(lambda value: value).process(Count()).uid("count").print()
env.execute("counting")
"""


@pytest.fixture(autouse=True)
def inline():
    """No job runs here."""


@pytest.fixture
def check(tmp_path, capsys):
    """The verdicts on a program, by operator or state, and the exit code."""

    def run(path, *arguments, count="LONG", more=""):
        program = tmp_path / "job.py"
        program.write_text(JOB.format(count=count, more=more))
        code = main(["savepoint", "check", *arguments, "--json", str(program), str(path)])
        found = json.loads(capsys.readouterr().out)
        return {each["state"] or each["operator"]: (each["fate"], "; ".join(each["notes"])) for each in found}, code

    return run


@pytest.fixture
def saved(tmp_path):
    writer = SavepointWriter.new_savepoint()
    writer.with_state("count", ValueStateDescriptor("count", Types.INT()), {1: 10})
    writer.with_state("count", ValueStateDescriptor("gone", Types.INT()), {1: 10})
    writer.with_state("other", ListStateDescriptor("list", Types.INT()), {1: [1]})
    return writer.write(str(tmp_path / "savepoint"))


def test_every_operator_and_state_has_an_outcome(check, saved):
    verdicts, code = check(saved, "-n")
    assert code == 0
    assert verdicts["count"] == ("migrated", "INT becomes LONG")
    assert verdicts["gone"] == ("kept", "kept until the function declares it")
    assert verdicts["seen"] == ("new", "starts empty")
    assert verdicts["other"] == ("dropped", "the program has no such operator")


def test_a_refused_restore_is_reported_with_exit_code_1(check, saved):
    verdicts, code = check(saved, count="STRING")
    assert code == 1
    assert verdicts["count"] == (
        "refused",
        "written as Integer, declared as String: there is no conversion between these types",
    )
    assert verdicts["other"][0] == "refused"


def test_another_max_parallelism_is_refused(check, saved):
    verdicts, code = check(saved, "-n", "--no-open", more="env.set_max_parallelism(7)")
    assert code == 1
    assert verdicts["count"][0] == "kept"  # the state; a line with the same name before it is that of its operator


def test_an_unset_max_parallelism_is_that_of_the_savepoint(check, saved, tmp_path):
    """At this parallelism the program's own would be 256; state of 128 cannot be shared out among more subtasks."""
    _, code = check(saved, "-n", "--no-open", more="env.set_parallelism(100)")
    assert code == 0
    with pytest.raises(json.JSONDecodeError):
        check(saved, "-n", "--no-open", more="env.set_parallelism(129)")


def test_nothing_is_changed_and_only_functions_are_opened(check, saved, capsys):
    before = {each: each.read_bytes() for each in Path(saved).rglob("*") if each.is_file()}
    check(saved, "-n")
    assert {each: each.read_bytes() for each in Path(saved).rglob("*") if each.is_file()} == before


def test_show_and_dispose(saved, tmp_path, capsys):
    assert main(["savepoint", "show", "--verify", saved]) == 0
    shown = capsys.readouterr().out
    assert "savepoint (canonical form)" in shown
    assert "no damage" in shown
    (Path(saved) / "mine.txt").write_text("not part of it")
    assert main(["savepoint", "dispose", saved]) == 0
    assert [each.name for each in Path(saved).rglob("*")] == ["mine.txt"]
    assert main(["savepoint", "dispose", saved]) == 1
    assert "is not a checkpoint or savepoint" in capsys.readouterr().err
