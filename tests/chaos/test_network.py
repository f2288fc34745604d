"""Hosts in network namespaces: which host reaches which, and the effect of a cut connection."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from millstream_chaos.machine.network import Network, NoNamespaces, check_available

_LISTEN = """
import socket
server = socket.create_server(("0.0.0.0", 7000))
print("listening", flush=True)
while True:
    connection, _ = server.accept()
    connection.recv(100)
    connection.sendall(b"pong")
    connection.close()
"""
_ASK = """
import socket, sys
connection = socket.create_connection((sys.argv[1], 7000), 0.5)
connection.settimeout(0.5)
connection.sendall(b"ping")
print(connection.recv(100).decode())
"""


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    try:
        check_available()
    except NoNamespaces as problem:
        pytest.skip(f"hosts need network namespaces, which this user or kernel does not have: {problem}")
    with Network(["one", "other", "third"]) as network:
        servers = []
        for host in network.values():
            command = host.command(sys.executable, "-c", _LISTEN)
            servers.append(subprocess.Popen(command, stdout=subprocess.PIPE))
            assert servers[-1].stdout.readline() == b"listening\n"
        yield network
        for server in servers:
            server.kill()
            server.wait()
            server.stdout.close()


def reaches(network: Network, one: str, other: str) -> bool:
    command = network[one].command(sys.executable, "-c", _ASK, network[other].address)
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout == "pong\n"


def test_hosts_reach_each_other_but_an_isolated_host_reaches_none(network: Network) -> None:
    assert reaches(network, "one", "other")
    with network.isolated("one"):
        assert not reaches(network, "one", "other")
        assert not reaches(network, "third", "one")
        assert reaches(network, "other", "third")
    assert reaches(network, "one", "other")


def test_a_cut_has_one_direction(network: Network) -> None:
    program = (
        "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('0.0.0.0', 7001)); "
        "s.settimeout(3); print('bound', flush=True); print(s.recv(9).decode())"
    )
    send = "import socket, sys; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'hi', (sys.argv[1], 7001))"
    network.cut("one", "other")
    try:
        for sender, receiver, arrives in (("other", "one", True), ("one", "other", False)):
            command = network[receiver].command(sys.executable, "-c", program)
            listening = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            assert listening.stdout.readline() == "bound\n"
            subprocess.run(network[sender].command(sys.executable, "-c", send, network[receiver].address), check=True)
            assert (listening.communicate(timeout=10)[0] == "hi\n") is arrives
    finally:
        network.heal()


def test_namespaces_are_deleted_afterwards() -> None:
    try:
        check_available()
    except NoNamespaces as problem:
        pytest.skip(f"hosts need network namespaces, which this user or kernel does not have: {problem}")
    with Network(["solo"]) as made:
        name = made["solo"].namespace
        assert name in subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    assert name not in subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
