"""The process of one program of a session cluster.

Promises: each program runs in its own Python process, attached to the cluster's Spark, with its own directory and log
file. Its messages are delivered in order, then its end, once. When the cluster ends, its standard input ends, and so
does the process.
Does not know: what the messages mean."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

PROGRAM_MODULE = "millstream.client.hosted_program"
WORKSPACE_MODULE = "millstream.cli.session_workspace"
_END_SECONDS = 10.0

OnMessage = Callable[["ProgramProcess", dict[str, Any]], None]
OnEnd = Callable[["ProgramProcess", str], None]


class ProgramProcess:
    """A running process. `address` is the URL of its REST server, once it serves."""

    def __init__(self, process: subprocess.Popen[str], token: str) -> None:
        self._process, self.token = process, token
        self._lock = threading.Lock()
        self._ended, self._has_started = threading.Event(), threading.Event()
        self.address: str | None = None

    @classmethod
    def start(
        cls,
        description: dict[str, Any],
        *,
        environment: Mapping[str, str],
        log: Path,
        token: str,
        on_message: OnMessage,
        on_end: OnEnd,
        module: str = PROGRAM_MODULE,
    ) -> ProgramProcess:
        """Start a process that runs `module`; `on_message` and `on_end` are called with it from a thread of its own."""
        reading, writing = os.pipe()
        with log.open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", module, str(writing)],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                cwd=description["directory"],
                env={**os.environ, **environment},
                pass_fds=[writing],
                text=True,
                start_new_session=True,  # Ctrl-C at the terminal of the cluster is for the cluster
            )
        os.close(writing)
        program = cls(process, token)

        def read() -> None:
            with os.fdopen(reading, encoding="utf-8") as messages:
                for line in messages:
                    message = json.loads(line)
                    if message["type"] == "serving":
                        program.address = message["address"]
                        program._has_started.set()
                    on_message(program, message)
            code = process.wait()
            program._ended.set()
            program._has_started.set()
            program.close()
            on_end(program, _describe_exit(code))

        threading.Thread(target=read, name=f"program-{process.pid}", daemon=True).start()
        program.send(**description, token=token)
        return program

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def wait(self, seconds: float) -> bool:
        """Wait for the end of the process; return whether it has ended."""
        return self._ended.wait(seconds)

    def wait_for_address(self, seconds: float) -> str | None:
        """Wait until the process serves or has ended; return its address, or None if it does not serve."""
        self._has_started.wait(seconds)
        return None if self._ended.is_set() else self.address

    def send(self, **answer: Any) -> None:
        """Send a line; a line to a process that has ended is dropped."""
        with self._lock, suppress(OSError, ValueError):
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(answer) + "\n")
            self._process.stdin.flush()

    def close(self) -> None:
        """Close the connection to the process, upon which it ends."""
        with self._lock, suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()

    def end(self) -> None:
        """End the process: by a message, and by a signal if it has not ended in time."""
        self.send(type="exit")
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Kill the process and what it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self.close()


def _describe_exit(code: int) -> str:
    return f"its process was ended by {signal.Signals(-code).name}" if code < 0 else f"its process ended with {code}"
