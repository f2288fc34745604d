"""The loop of a shell with a person in front of it.

Promises: only QUIT, EXIT and Ctrl-D leave; jobs that would end with the shell are asked about first.
Does not know: statements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from millstream.cli.shell.shell import Leave, Shell


class Reader(Protocol):
    """Where texts come from."""

    def read(self) -> str:
        """The next text; KeyboardInterrupt when it is given up, EOFError when there are no more."""

    def ask(self, question: str) -> bool:
        """A question with yes or no."""


def interact(shell: Shell, reader: Reader, greet: Callable[[], None]) -> None:
    """Read and run until the person leaves."""
    greet()
    while True:
        try:
            if not _wants_to_leave(shell, reader):
                continue
            running = shell.jobs.running()
            if running is None or reader.ask(f"{running} will end with the shell. Leave?"):
                break
        except KeyboardInterrupt:
            continue  # pressed once more than there was something to stop
    shell.jobs.end()


def _wants_to_leave(shell: Shell, reader: Reader) -> bool:
    shell.tell_ended()
    try:
        shell.handle(reader.read())
    except (Leave, EOFError):
        return True
    return False
