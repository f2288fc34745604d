"""Server processes that end with the process that started them, also when that process is killed.

A guard, a small shell script, starts the server and waits for the end of its standard input. Start it with a pipe as
standard input and keep the pipe open: the system closes the pipe when the parent process ends.

Promises: the server gets a signal when the pipe is closed; the guard first writes the server's process id to a file,
and exits with the server's status.
Does not know: what the server does."""

from __future__ import annotations

from collections.abc import Sequence

_GUARD = """\
pid_file=$1
signal=$2
shift 2
exec 3<&0
"$@" </dev/null 3<&- &
server=$!
echo $server > "$pid_file"
(read -r _ <&3; kill -s "$signal" $server) 2>/dev/null &
guard=$!
wait $server
status=$?
kill $guard
exit $status
"""


def build_guarded_command(command: Sequence[str], pid_file: str = "/dev/null", signal: str = "KILL") -> list[str]:
    """Return the command of a guard that starts `command`, and stops it with the signal of this name."""
    return ["/bin/sh", "-c", _GUARD, "sh", pid_file, signal, *command]
