"""Broadcasts that end, with their files.

Promises: what was broadcast and ended leaves no bytes in the files of the driver and at most `KEPT` empty files; no
later job fails for it; a JVM that is gone is no error.
Does not know: what was broadcast.

PySpark keeps the value of a broadcast in a file of the driver until its context ends. The driver's JVM holds a block
that names this file. When memory is short, the JVM moves the block to disk and reads the file for that. If the file
were missing, every task that needs memory would fail, whichever job it belongs to. `Broadcast.destroy` deletes the
file while the block may still be there: the JVM removes blocks later, in another thread. So the block first gets the
name of the null device, which is always there and empty. After that the file is emptied. It is deleted only when other
broadcasts have ended, because the JVM may have just read its name.

To send large commands with the task instead of as a broadcast is no alternative: with 4 MiB for each slot an epoch took
four times as long, since Py4J encodes bytes as text."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Iterator
from typing import Any

from py4j.protocol import Py4JError
from pyspark import Broadcast

LARGE = 1 << 19  # bytes; what is larger travels as a broadcast of ours. PySpark makes its own above 1 MiB
KEPT = 16  # empty files that are not deleted yet

_emptied: deque[str] = deque()


def end(broadcast: Broadcast[Any]) -> None:
    """Let a broadcast go that late tasks of a job that failed or was cancelled may still read; they fail if they do.

    Spark removes its blocks when the JVM collects its garbage: blocks that are removed while a task reads them may be
    put back, and would then name a file that was removed with them."""
    with contextlib.suppress(Py4JError, OSError):
        _let_go_of_file(broadcast)


def destroy(broadcast: Broadcast[Any]) -> None:
    """Let a broadcast go that no task reads any more: its blocks are removed at once."""
    end(broadcast)
    jvm_broadcast: Any = broadcast._jbroadcast
    with contextlib.suppress(Py4JError, OSError):
        jvm_broadcast.destroy(False)


@contextlib.contextmanager
def ended_with_job(sent: list[Broadcast[Any]]) -> Iterator[None]:
    """Let the broadcasts of a job go when it ends; after a job that failed, tasks may still read them."""
    let_go = end
    try:
        yield
        let_go = destroy
    finally:
        while sent:
            let_go(sent.pop())


def _let_go_of_file(broadcast: Broadcast[Any]) -> None:
    held: Any = broadcast._python_broadcast  # the object in the block, unless the block has been on disk already
    getattr(held, "path_$eq")(os.devnull)
    os.truncate(broadcast._path, 0)
    _emptied.append(broadcast._path)
    while len(_emptied) > KEPT:
        with contextlib.suppress(FileNotFoundError):  # its context has ended
            os.unlink(_emptied.popleft())
