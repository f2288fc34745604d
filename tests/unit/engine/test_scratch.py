"""Directories of jobs on a host: private, and deleted when no process uses them any more."""

import os
import stat
import subprocess
import sys

import pytest

from millstream.engine import scratch
from millstream.engine.scratch import MARK, ForeignDirectory, Hold, remove_parts, use

LONG_AGO = 1_000_000_000


def names(directory):
    return sorted(os.listdir(directory))


def abandon(directory, *, at=LONG_AGO):
    """Make a directory look like that of a dead process."""
    Hold(str(directory)).release()
    (directory / "stores").mkdir()
    (directory / "stores" / "data.mdb").write_bytes(b"state")
    os.utime(directory / MARK, (at, at))


def test_a_directory_is_for_its_owner_only(tmp_path):
    hold = Hold(str(tmp_path / "deep" / "millstream-a"))
    assert stat.S_IMODE((tmp_path / "deep" / "millstream-a").stat().st_mode) == 0o700
    hold.release()


def test_a_directory_of_another_user_is_not_used(tmp_path, monkeypatch):
    (tmp_path / "millstream-a").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(ForeignDirectory):
        Hold(str(tmp_path / "millstream-a"))


def test_the_directory_of_a_dead_process_is_deleted_by_the_next_job(tmp_path):
    abandon(tmp_path / "millstream-dead")
    abandon(tmp_path / "millstream-young", at=os.stat(tmp_path).st_mtime)
    (tmp_path / "millstream-else").mkdir()  # has no mark: it is of another program
    (tmp_path / "other").mkdir()
    Hold(str(tmp_path / "millstream-new")).release()
    assert names(tmp_path) == ["millstream-else", "millstream-new", "millstream-young", "other"]


HOLDER = "import sys; from millstream.engine.scratch import Hold; hold = Hold(sys.argv[1]); print(flush=True); input()"


def test_a_directory_in_use_is_kept_until_its_process_is_killed(tmp_path):
    used = tmp_path / "millstream-used"
    command = [sys.executable, "-c", HOLDER, str(used)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        holder.stdout.readline()
        os.utime(used / MARK, (LONG_AGO, LONG_AGO))
        Hold(str(tmp_path / "millstream-new")).release()
        assert used.exists()
        holder.kill()
    Hold(str(tmp_path / "millstream-new")).release()
    assert not used.exists()


def test_the_marker_is_updated_while_the_directory_is_used(tmp_path, monkeypatch):
    monkeypatch.setattr(scratch, "_TOUCH_EVERY", 0.0)
    hold = Hold(str(tmp_path / "millstream-a"))
    mark = tmp_path / "millstream-a" / MARK
    os.utime(mark, (LONG_AGO, LONG_AGO))
    hold.touch()
    assert mark.stat().st_mtime > LONG_AGO
    hold.release()


def test_a_worker_holds_the_directories_of_its_newest_jobs(tmp_path):
    for number in range(20):
        use(str(tmp_path / f"millstream-{number}"))
    assert len(scratch._used) == 8
    scratch.release_all()
    assert not scratch._used


def test_the_end_of_a_job_deletes_files_of_workers_but_not_of_the_driver(tmp_path):
    for directory, more in ((tmp_path / "executor", None), (tmp_path / "driver", "bundle.tar")):
        abandon(directory)
        if more:
            (directory / more).write_bytes(b"")
        remove_parts(str(directory))
    assert names(tmp_path) == ["driver"]
    assert names(tmp_path / "driver") == ["bundle.tar", MARK]
    remove_parts(str(tmp_path / "never-there"))
