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
        shell.tell_ended()
        try:
            shell.handle(reader.read())
        except KeyboardInterrupt:
            continue
        except (Leave, EOFError):
            running = shell.jobs.running()
            if running is None or reader.ask(f"{running} will end with the shell. Leave?"):
                break
    shell.jobs.end()
