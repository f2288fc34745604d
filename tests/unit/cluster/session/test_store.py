"""The store of a session cluster, and the history of its jobs."""

from __future__ import annotations

import json
from pathlib import Path

from millstream.cluster.session import archive
from millstream.cluster.session.store import ProgramStore, write_history

JOB = "a" * 32


def test_a_program_is_in_the_store_until_it_is_archived(tmp_path: Path) -> None:
    store = ProgramStore(str(tmp_path / "store"))
    assert store.programs() == store.archived() == {}
    store.add("p", {"upload": "job.py"}, b"print()")
    (tmp_path / "store" / "programs" / "damaged.json").write_text("{")
    again = ProgramStore(str(tmp_path / "store"))
    assert again.programs() == {"p": {"upload": "job.py"}}
    assert again.content("p") == b"print()"
    again.archive("p", {"status": "FINISHED"})
    assert again.archived() == {"p": {"status": "FINISHED"}}
    assert again.programs() == {}


def test_an_archive_keeps_the_responses_of_a_job(tmp_path: Path) -> None:
    answers = {f"/jobs/{JOB}": {"vertices": [{"id": "v"}]}, f"/jobs/{JOB}/vertices/v/watermarks": []}
    kept = archive.archive_jobs([{"jid": JOB}], answers.get)
    assert archive.job_overviews(kept) == [{"jid": JOB}]
    assert archive.find(kept, f"/jobs/{JOB}/vertices/v/watermarks") == "[]"
    assert archive.find(kept, f"/jobs/{JOB}/plan") is None
    write_history(str(tmp_path), [{"jid": JOB}], kept)
    history = json.loads((tmp_path / JOB).read_text())
    assert [entry["path"] for entry in history["archive"]] == ["/jobs/overview", *answers]
