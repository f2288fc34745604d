"""Where the processes of a test server run: this machine, or a network namespace of it.

Promises: the command line that starts a program there.
Does not know: how a namespace is created; fault tests create several and cut the links between them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Host:
    """A host for test servers.

    Args:
        address: Its IP address.
        namespace: The network namespace of its processes; empty for the namespace of this machine.

    """

    address: str = "127.0.0.1"
    namespace: str = ""

    def command(self, *arguments: str) -> list[str]:
        """Return the command line that runs a program on this host; the process has the id of the program."""
        return ["ip", "netns", "exec", self.namespace, *arguments] if self.namespace else list(arguments)


LOCALHOST = Host()
