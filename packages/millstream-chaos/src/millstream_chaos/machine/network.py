"""Several hosts on one machine: Linux network namespaces with links that can be cut.

    with Network(["driver", "broker"]) as network:
        subprocess.Popen(network["broker"].command("kafka-server-start.sh", ...))
        network.cut("driver", "broker")            # no packet of the driver reaches the broker; replies still do
        network.cut_both("driver", "broker")       # neither direction works
        network.heal()

Promises: hosts reach each other and nothing else, each at an address of its own; a cut drops packets silently, as a
broken link does, without closing connections; all namespaces are gone when the `with` block ends.
Does not know: what runs on a host. For delay and loss, see `millstream_chaos.machine.proxy`.

A cut is a permanent entry in the sender's neighbour table with a hardware address that no host has. It needs neither a
packet filter nor a queueing discipline, which minimal kernels lack."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence

from millstream.errors import ExternalError, UserError
from millstream.testing.host import Host

_SUBNET = "10.77.0"
_NO_HOST = "02:00:00:00:00:fe"  # a hardware address that no host has
_INTERFACE = "eth0"
_numbers = itertools.count()  # numbers the networks of this process


class NoNamespaces(UserError):
    """This user cannot create network namespaces on this machine."""

    hint = "network chaos needs Linux, iproute2 and root"

    def __init__(self, reason: str) -> None:
        super().__init__(f"network namespaces cannot be created: {reason}")


class NetworkFailed(ExternalError):
    """A command of iproute2 failed."""

    def __init__(self, command: Sequence[str], reason: str) -> None:
        super().__init__(f"'{' '.join(command)}' failed: {reason.strip()}")


class Network(Mapping[str, Host]):
    """Hosts by name."""

    def __init__(self, names: Sequence[str]) -> None:
        prefix = f"millstream-{os.getpid()}-{next(_numbers)}"
        self._switch = f"{prefix}-switch"
        self._hosts = {
            name: Host(f"{_SUBNET}.{number}", f"{prefix}-{name}") for number, name in enumerate(names, start=1)
        }
        self._cuts: set[tuple[str, str]] = set()

    @classmethod
    def existing(cls, hosts: Mapping[str, Host]) -> Network:
        """Return a network that another process created and will delete."""
        network = cls(())
        network._hosts = dict(hosts)
        return network

    def __enter__(self) -> Network:
        check_available()
        try:
            self._build()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _build(self) -> None:
        _ip("netns", "add", self._switch)
        _ip("-n", self._switch, "link", "add", "switch", "type", "bridge")
        _ip("-n", self._switch, "link", "set", "switch", "up")
        for number, host in enumerate(self._hosts.values()):
            port = f"port{number}"
            _ip("netns", "add", host.namespace)
            _ip("-n", host.namespace, "link", "set", "lo", "up")
            peer = ["peer", "name", port, "netns", self._switch]
            _ip("link", "add", _INTERFACE, "netns", host.namespace, "type", "veth", *peer)
            _ip("-n", self._switch, "link", "set", port, "master", "switch", "up")
            _ip("-n", host.namespace, "address", "add", f"{host.address}/24", "dev", _INTERFACE)
            _ip("-n", host.namespace, "link", "set", _INTERFACE, "up")

    def close(self) -> None:
        """Delete the namespaces with their interfaces."""
        existing = set(_namespaces())
        for namespace in [self._switch, *(host.namespace for host in self._hosts.values())]:
            if namespace in existing:
                _ip("netns", "delete", namespace)

    def cut(self, sender: str, receiver: str) -> None:
        """Drop the packets from one host to another; the other direction works."""
        self._cuts.add((sender, receiver))
        _ip("-n", self[sender].namespace, "neigh", "replace", self[receiver].address, "lladdr", _NO_HOST,
            "dev", _INTERFACE, "nud", "permanent")  # fmt: skip

    def cut_both(self, one: str, other: str) -> None:
        """Drop the packets between two hosts in both directions."""
        self.cut(one, other)
        self.cut(other, one)

    def isolate(self, name: str) -> None:
        """Drop all packets from and to a host."""
        for other in self:
            if other != name:
                self.cut_both(name, other)

    def heal(self) -> None:
        """Undo all cuts."""
        for sender, receiver in sorted(self._cuts):
            _ip("-n", self[sender].namespace, "neigh", "delete", self[receiver].address, "dev", _INTERFACE)
        self._cuts.clear()

    @contextlib.contextmanager
    def isolated(self, name: str) -> Iterator[None]:
        """Isolate a host for the duration of a `with` block."""
        self.isolate(name)
        try:
            yield
        finally:
            self.heal()

    def __getitem__(self, name: str) -> Host:
        return self._hosts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._hosts)

    def __len__(self) -> int:
        return len(self._hosts)


def check_available() -> None:
    """Raise `NoNamespaces` unless namespaces, bridges and virtual links can be created here."""
    if shutil.which("ip") is None:
        raise NoNamespaces(reason="there is no 'ip' command (Debian: apt install iproute2)")
    probe = f"millstream-{os.getpid()}-probe"
    try:
        _ip("netns", "add", probe)
        try:
            _ip("-n", probe, "link", "add", "switch", "type", "bridge")
            _ip("-n", probe, "link", "add", "one", "type", "veth", "peer", "name", "other")
        finally:
            _ip("netns", "delete", probe)
    except NetworkFailed as problem:
        raise NoNamespaces(problem.message) from problem


def _namespaces() -> list[str]:
    return [line.split()[0] for line in _ip("netns", "list").splitlines() if line]


def _ip(*arguments: str) -> str:
    command = ["ip", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    if done.returncode != 0:
        raise NetworkFailed(command, done.stderr)
    return done.stdout
