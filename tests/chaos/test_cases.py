"""The short versions of the cases of chaos; the long ones are run with `make chaos`."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from millstream.cli.main import main
from millstream_chaos import command
from millstream_chaos import registry as chaos
from millstream_chaos.cases import storage
from millstream_chaos.cases.upgrade import NoHistory
from millstream_chaos.jobs.engines import engine_options
from millstream_chaos.machine.limits import NoLimits
from millstream_chaos.machine.network import NoNamespaces
from millstream_chaos.outputs.real_sinks import SINKS
from millstream_chaos.trace import Report

IN_PROCESS = ("leaders", "rescale", "damage", "clocks", "hostile", "poison", "objects")
WITH_BROKER = ("brokers", "replicas")
ON_SPARK = ("kafka", "pressure", "soak", "network", "upgrade")  # "kills" and "executors" are "kafka" with files


@pytest.mark.parametrize("case", IN_PROCESS)
def test_all_checks_pass(case: str, tmp_path: Path) -> None:
    report = chaos.play(chaos.plan(case, 1, "ci"), tmp_path)
    assert report.ok, "\n".join(report.format_lines())


@cache
def _storage() -> chaos.Trace:
    return chaos.plan("storage", 1, "ci")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("program", storage.CI)
def test_the_job_survives_every_storage_fault(program: str, tmp_path: Path) -> None:
    trace = _storage()
    steps = [each for each in trace.steps if each["program"] == program and "output" not in each]
    report = chaos.play(replace(trace, steps=steps), tmp_path)
    assert report.ok, "\n".join(report.format_lines())


@pytest.mark.parametrize("sink", SINKS)
def test_storage_faults_do_not_change_the_output_of_real_sinks(sink: str, tmp_path: Path) -> None:
    trace = _storage()
    steps = [each for each in trace.steps if each.get("output") == sink]
    report = chaos.play(replace(trace, steps=steps), tmp_path)
    assert report.ok, "\n".join(report.format_lines())


@pytest.mark.timeout(240)
@pytest.mark.parametrize("case", WITH_BROKER)
def test_all_checks_pass_with_a_broker(case: str, tmp_path: Path) -> None:
    report = chaos.play(chaos.plan(case, 1, "ci"), tmp_path)
    assert report.ok, "\n".join(report.format_lines())


@pytest.mark.spark
@pytest.mark.timeout(480)
@pytest.mark.parametrize("case", ON_SPARK)
def test_all_checks_pass_on_spark(case: str, tmp_path: Path) -> None:
    try:
        report = chaos.play(chaos.plan(case, 1, "ci"), tmp_path)
    except NoNamespaces as problem:
        pytest.skip(f"hosts need network namespaces, which this user or kernel does not have: {problem}")
    except NoHistory as problem:
        pytest.skip(f"an upgrade starts from the last release, whose source is not in this checkout: {problem}")
    print("\n".join(report.format_lines()))
    assert report.ok, "\n".join(report.format_lines())


@pytest.mark.spark
@pytest.mark.timeout(480)
@pytest.mark.parametrize(("case", "part"), [("mixed", "sql"), ("resources", "stores"), ("resources", "memory")])
def test_a_part_of_a_case_passes_on_spark(case: str, part: str, tmp_path: Path) -> None:
    trace = chaos.plan(case, 1, "ci")
    trace = replace(trace, steps=[step for step in trace.steps if part in (step["kind"], step.get("job"))])
    try:
        report = chaos.play(trace, tmp_path)
    except NoLimits as problem:
        pytest.skip(f"limits of disk and memory need mounts and control groups of Linux: {problem}")
    assert report.ok, "\n".join(report.format_lines())


@pytest.mark.parametrize("case", [case for case in chaos.CASES if case not in ("leaders", "storage")])
def test_a_trace_is_a_function_of_its_seed(case: str) -> None:
    assert chaos.plan(case, 7, "ci") == chaos.plan(case, 7, "ci")
    if case != "pressure":
        assert chaos.plan(case, 7, "ci").steps != chaos.plan(case, 8, "ci").steps


def test_an_engine_is_for_cases_on_spark_and_part_of_the_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["chaos", "poison", "--engine", "resident"]) == 1
    assert "the case 'poison' takes no --engine" in capsys.readouterr().err
    played: list[chaos.Trace] = []

    def play(trace: chaos.Trace, directory: Path) -> Report:
        played.append(trace)
        return Report(trace)

    monkeypatch.setattr(command, "play", play)
    path = tmp_path / "trace.json"
    assert main(["chaos", "kills", "--engine", "resident", "--size", "ci", "--trace", str(path)]) == 0
    assert main(["chaos", "--replay", str(path)]) == 0
    assert main(["chaos", "all", "--engine", "auto", "--size", "ci"]) == 0
    engines = [(trace.case, engine_options(trace)) for trace in played]
    resident, auto = ({"millstream.engine": engine} for engine in ("resident", "auto"))
    assert engines == [("kills", resident), ("kills", resident), *((case, auto) for case in chaos.ON_ENGINES)]
    assert "engine resident" in capsys.readouterr().out
    assert engine_options(chaos.plan("kills", 1, "ci")) == {}


def test_a_trace_is_played_again_from_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = tmp_path / "trace.json"
    assert main(["chaos", "rescale", "--seed", "3", "--size", "ci", "--trace", str(first)]) == 0
    told = capsys.readouterr().out
    assert "all held" in told
    assert main(["chaos", "--replay", str(first)]) == 0
    assert capsys.readouterr().out == told


def test_a_failing_case_reports_the_problem_and_writes_its_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trace = chaos.Trace("damage", 5, "ci")
    trace.save(tmp_path / "given.json")  # without steps, so without damage
    assert main(["chaos", "--replay", "given.json"]) == 1
    assert "WRONG: no job survived its damage" in capsys.readouterr().out
    assert json.loads((tmp_path / "chaos-damage-5.json").read_text())["seed"] == 5


def test_a_file_that_is_not_a_trace_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other").write_text("[]")
    assert main(["chaos", "--replay", str(tmp_path / "other")]) == 1
    assert "is not a trace" in capsys.readouterr().err
