"""Releases broadcast variables together with their files on the driver.

Promises: released broadcasts leave no bytes in files of the driver and at most `KEPT` empty files; no later job fails
because of it; a JVM that is gone is not an error.
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

LARGE = 1 << 19  # bytes; larger commands are sent as our broadcast. Above 1 MiB PySpark would create one itself
KEPT = 16  # empty files that are not deleted yet

_emptied: deque[str] = deque()


def release(broadcast: Broadcast[Any]) -> None:
    """Release a broadcast that tasks of a failed or cancelled job may still read; such tasks fail.

    Spark removes its blocks when the JVM collects garbage. Blocks that are removed while a task reads them may be
    stored again, and would then name a file that was deleted with them."""
    with contextlib.suppress(AttributeError, Py4JError, OSError):  # what is not released is deleted with the context
        _release_file(broadcast)


def destroy(broadcast: Broadcast[Any]) -> None:
    """Release a broadcast that no task reads any more: its blocks are removed at once."""
    release(broadcast)
    jvm_broadcast: Any = broadcast._jbroadcast
    with contextlib.suppress(Py4JError, OSError):
        jvm_broadcast.destroy(False)


@contextlib.contextmanager
def release_after_job(broadcasts: list[Broadcast[Any]]) -> Iterator[None]:
    """Release the broadcasts of a job when it ends; after a job that failed, tasks may still read them."""
    remove = release
    try:
        yield
        remove = destroy
    finally:
        while broadcasts:
            remove(broadcasts.pop())


def _release_file(broadcast: Broadcast[Any]) -> None:
    python_broadcast: Any = (
        broadcast._python_broadcast
    )  # the object in the block, unless the block has been on disk already
    getattr(python_broadcast, "path_$eq")(os.devnull)
    os.truncate(broadcast._path, 0)
    _emptied.append(broadcast._path)
    while len(_emptied) > KEPT:
        with contextlib.suppress(FileNotFoundError):  # its context has ended
            os.unlink(_emptied.popleft())
