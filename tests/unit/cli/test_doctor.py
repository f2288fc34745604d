import json
import os
import subprocess
from io import StringIO

import pytest
from rich.console import Console

from millstream.cli import doctor, main
from millstream.cli.doctor import Finding, Status


def test_checking_a_checkpoint_directory_leaves_no_files(tmp_path):
    assert doctor.checkpoints(str(tmp_path / "new" / "deep")).status is Status.OK
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_a_file_fails_with_a_remedy(tmp_path):
    (tmp_path / "file").write_text("")
    finding = doctor.checkpoints(str(tmp_path / "file"))
    assert finding.status is Status.FAIL
    assert finding.remedy


def test_a_remote_directory_is_not_reported_as_ok():
    assert doctor.checkpoints("s3://bucket/checkpoints").status is Status.WARN


def test_a_missing_package_names_its_remedy():
    assert doctor.package("no-such-package") == Finding(
        "no-such-package", Status.FAIL, "not installed", "pip install no-such-package"
    )


@pytest.mark.parametrize(("name", "version"), [("pyspark", "3.4.0"), ("pyspark", "5.0.0"), ("pandas", "3.0.1")])
def test_an_unsupported_version_fails(name, version, monkeypatch):
    monkeypatch.setattr("importlib.metadata.version", lambda _: version)
    finding = doctor._run_check(name, lambda: doctor.package(name))
    assert finding.status is Status.FAIL
    assert f'pip install "{name}' in finding.remedy


def test_a_check_that_crashes_is_a_failure_and_the_others_still_run(monkeypatch):
    monkeypatch.setattr(doctor, "loopback", lambda: 1 / 0)
    monkeypatch.setattr(doctor, "java", lambda: Finding("java", Status.OK, "21"))
    monkeypatch.setattr(doctor, "classes", lambda archive: Finding("classes", Status.OK, "not archived"))
    findings = {finding.check: finding for finding in doctor.examine()}
    assert findings["loopback"].status is Status.FAIL
    assert findings["python"].status is Status.OK


@pytest.mark.parametrize(("status", "code"), [(Status.OK, 0), (Status.WARN, 0), (Status.FAIL, 1)])
def test_the_exit_code_is_one_only_after_a_failure(status, code, monkeypatch, capsys):
    monkeypatch.setattr(doctor, "examine", lambda **_: [Finding("disk", status, "1 GiB", "free some")])
    assert main(["doctor", "--json"]) == code
    assert json.loads(capsys.readouterr().out) == [
        {"check": "disk", "status": status.value, "seen": "1 GiB", "mend": "free some"}
    ]


def test_findings_are_printed_without_markup():
    out = StringIO()
    doctor.show([Finding("java", Status.FAIL, "[red]17[/red]", "install")], Console(file=out, width=80))
    assert out.getvalue() == f"fail java        [red]17[/red]{os.linesep}                 -> install{os.linesep}"


def trial(**settings: str) -> doctor.SparkTrial:
    """A Spark that started with these settings."""
    made = doctor.SparkTrial("spark://somewhere:7077", {})
    said = json.dumps({"seen": "4.3 on spark://somewhere:7077", "settings": settings})
    made.__dict__["answer"] = subprocess.CompletedProcess([], 0, f"some words\n{said}\n", "")
    return made


def test_an_unprotected_network_of_a_cluster_is_a_warning() -> None:
    finding = doctor.network(trial(**{"spark.authenticate": "false"}))
    assert finding.status is Status.WARN
    assert "spark.authenticate is off" in finding.observed
    assert "spark.network.crypto.enabled is off" in finding.observed
    assert "secure.md" in finding.remedy


def test_a_protected_network_is_ok() -> None:
    protected = trial(**{"spark.authenticate": "true", "spark.network.crypto.enabled": "true"})
    assert doctor.network(protected).status is Status.OK


def test_the_network_is_checked_on_a_cluster_only(monkeypatch: pytest.MonkeyPatch) -> None:
    ready = trial()
    monkeypatch.setattr(doctor, "loopback", lambda: Finding("loopback", Status.OK, "fine"))
    monkeypatch.setattr(doctor, "SparkTrial", lambda master, settings: ready)
    monkeypatch.setattr(doctor, "java", lambda: Finding("java", Status.OK, "21"))
    monkeypatch.setattr(doctor, "classes", lambda archive: Finding("classes", Status.OK, "not archived"))
    assert "network" in {finding.check for finding in doctor.examine(master="spark://somewhere:7077")}
    assert "network" not in {finding.check for finding in doctor.examine(master="local[2]")}
