"""`millstream checkpoints`, on checkpoints written by the storage itself."""

import json
from pathlib import Path

import pytest

from millstream.checkpoint.metadata import CheckpointMetadata, OperatorSnapshot
from millstream.checkpoint.storage import CheckpointStorage
from millstream.cli import main
from millstream.runtime.memory import SubtaskMemory
from millstream.state.handles import Handle, Lineage


def metadata(number: int, *handles: Handle, name: str = "totals") -> CheckpointMetadata:
    return CheckpointMetadata(
        checkpoint=number,
        epoch=10 * number,
        generation=0,
        job_id="job-1",
        job_name=name,
        timestamp=1_700_000_000_000,
        now=1_700_000_000_000,
        operators=(
            OperatorSnapshot("op-1", "Source: orders", "orders", 1, 128, (Lineage(),), (SubtaskMemory(),)),
            OperatorSnapshot("op-2", "Window", None, 1, 128, (Lineage(handles),), (SubtaskMemory(watermark=3),)),
        ),
        sources={"op-1": {"offset": 42}},
        committables={"op-2": ({"file": "part-0"},)},
        bytes_new=5,
    )


@pytest.fixture
def root(tmp_path):
    """Two checkpoints of one job; they share a state file."""
    storage = CheckpointStorage(str(tmp_path), "job-1", sync=False)
    base, more = storage.write("shared/base", b"x" * 2048), storage.write("shared/more", b"12345")
    first = Handle(base.name, base.size, base.sha256, 9, 7, base=True)
    storage.publish(2, metadata(2, first).to_bytes())
    storage.void(3)  # given up: there is nothing to show
    storage.publish(10, metadata(10, first, Handle(more.name, more.size, more.sha256, 99, 1)).to_bytes())
    return tmp_path


@pytest.mark.parametrize("below", ["", "job-1"])
def test_checkpoints_are_listed_in_order_from_the_root_or_the_job(root, below, capsys):
    assert main(["checkpoints", str(root / below)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["CHECKPOINT", "job-1/chk-2", "job-1/chk-10"]
    assert "totals" in lines[1]
    assert "2023-11-14 22:13:20Z" in lines[1]
    assert "2.0 KiB" in lines[1]


@pytest.mark.parametrize(
    "words", [["{}", "--show", "10"], ["{}/job-1/chk-10"], ["file://{}/job-1", "--show", "chk-10"]]
)
def test_one_is_shown_with_files_positions_and_staged_output(root, words, capsys):
    assert main(["checkpoints", *(word.format(root) for word in words)]) == 0
    shown = capsys.readouterr().out
    assert "checkpoint 10 of job 'totals' (job-1)" in shown
    assert "subtask 0  base   epoch 9   7 rows  2.0 KiB  job-1/shared/base" in shown
    assert """Source: orders  {"offset": 42}""" in shown
    assert """Window  {"file": "part-0"}""" in shown


def test_verifying_reads_each_file_once(root, capsys):
    assert main(["checkpoints", str(root), "--verify"]) == 0
    assert "verified: 2 state files, 2.0 KiB" in capsys.readouterr().out


@pytest.mark.parametrize(
    "harm", [Path.unlink, lambda path: path.write_bytes(b"12346"), lambda path: path.write_bytes(b"")]
)
def test_damage_to_a_state_file_is_named_and_exits_with_1(root, harm, capsys):
    harm(root / "job-1" / "shared" / "more")
    assert main(["checkpoints", str(root)]) == 0
    assert main(["checkpoints", str(root), "--verify"]) == 1
    printed = capsys.readouterr()
    assert str(root / "job-1" / "shared" / "more") in printed.err
    assert len(printed.err.splitlines()) == 1
    assert "chk-10" in printed.err
    assert "verified" not in printed.out


def test_damaged_metadata_is_named_and_hides_no_other_checkpoint(root, capsys):
    file = root / "job-1" / "chk-2" / "_metadata"
    file.write_bytes(file.read_bytes().replace(b"totals", b"Totals"))
    assert main(["checkpoints", str(root)]) == 1
    printed = capsys.readouterr()
    assert str(file) in printed.err
    assert "job-1/chk-10  totals" in printed.out


def test_a_file_outside_the_root_is_not_read(root, capsys):
    storage = CheckpointStorage(str(root), "job-1", sync=False)
    storage.publish(11, metadata(11, Handle("../secret", 1, "0" * 64, 1)).to_bytes())
    assert main(["checkpoints", str(root), "--show", "11", "--verify"]) == 1
    assert "'../secret' is not inside" in capsys.readouterr().err


def test_json_contains_the_listed_or_shown_checkpoints(root, capsys):
    assert main(["checkpoints", str(root), "--json", "--verify"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(each["checkpoint"], each["bytes"], each["damage"]) for each in listed] == [(2, 2048, []), (10, 2053, [])]
    assert main(["checkpoints", str(root), "--json", "--show", "2"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["sources"] == {"op-1": {"offset": 42}}


def test_names_from_files_cannot_move_the_cursor(root, capsys):
    storage = CheckpointStorage(str(root), "job-1", sync=False)
    storage.publish(12, metadata(12, name="\x1b[2Jgone").to_bytes())
    main(["checkpoints", str(root)])
    main(["checkpoints", str(root), "--show", "12"])
    assert "\x1b" not in capsys.readouterr().out


def test_a_directory_without_checkpoints_is_an_error(root, capsys):
    assert main(["checkpoints", str(root / "elsewhere")]) == 1
    assert main(["checkpoints", str(root), "--show", "3"]) == 1
    assert "there are no checkpoints called chk-3" in capsys.readouterr().err
