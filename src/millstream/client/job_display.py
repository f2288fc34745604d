"""A job as output of a notebook cell: its status, and its progress while it runs.

Promises: outside of notebooks nothing is shown.
Does not know: how output is replaced."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from millstream.client import html
from millstream.client.live_display import LiveDisplay, is_notebook

if TYPE_CHECKING:
    from millstream.client.job_client import JobClient

_WAIT = 0.2  # seconds between two updates


def wait_for_end(client: JobClient) -> None:
    """Wait for the end of a job; a notebook shows its progress meanwhile."""
    if not is_notebook():
        while not client.wait(_WAIT):
            pass
        return
    _update(client, _display(client))


def show_job(client: JobClient) -> None:
    """Show a job as output of the current cell; a thread replaces the output until the job has ended."""
    if not is_notebook():
        print(repr(client))
        return
    live = _display(client)
    live.show()  # created in this thread, because output that another thread creates belongs to no cell
    threading.Thread(target=_update, args=(client, live), name="job-display", daemon=True).start()


def _display(client: JobClient) -> LiveDisplay:
    return LiveDisplay(lambda: (job_html(client), repr(client)))


def _update(client: JobClient, live: LiveDisplay) -> None:
    try:
        while not client.wait(_WAIT):
            live.refresh()
    finally:
        live.show()


def job_html(client: JobClient) -> str:
    """Return the id, the status and the progress of a job as HTML."""
    status = client.get_job_status().result()
    rows, notes = [("status", status.name)], list[str]()
    if client.progress is not None:
        rows += [row for row in client.progress.rows() if row[0] != "status"]
        notes = client.progress.recent_notes()
    return html.facts(f"Job {client.name}", [("job id", str(client.get_job_id())), *rows], notes)
