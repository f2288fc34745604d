"""Server processes that end with the process that started them, however that ends.

Promises: the server gets a signal when the standard input of the guard is closed, which the end of its parent does too;
the guard writes the server's process id to a file before anything else and ends with the server's status.
Does not know: what the server does. Start the guard with a pipe as its standard input, and keep the pipe."""

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


def guarded(command: Sequence[str], pid_file: str = "/dev/null", signal: str = "KILL") -> list[str]:
    """The command of a guard for the process that this command starts; `signal` is the name of what ends it."""
    return ["/bin/sh", "-c", _GUARD, "sh", pid_file, signal, *command]
