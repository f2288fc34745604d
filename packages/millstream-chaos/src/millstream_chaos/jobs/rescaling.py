"""Rescales the running job of drivers in other processes, over REST.

Promises: the driver that runs the job is found, whichever of the ports it has.
Does not know: cases."""

from __future__ import annotations

import socket
from collections.abc import Mapping

from millstream.client.remote import RemoteCluster, Unreachable
from millstream.errors import ExternalError

_DRIVERS = 4  # each takes the first free port


class NotRunning(ExternalError):
    """No driver runs the job."""


def offer_ports() -> dict[str, str]:
    """Return the option with the ports of the drivers of a job."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        first = min(probe.getsockname()[1], 65_000)
    return {"rest.bind-port": f"{first}-{first + _DRIVERS - 1}"}


def rescale_running_job(options: Mapping[str, str], parallelism: int) -> None:
    """Rescale the job, and return when it runs at the parallelism."""
    first, last = map(int, options["rest.bind-port"].split("-"))
    for port in range(first, last + 1):
        cluster = RemoteCluster(f"127.0.0.1:{port}")
        try:
            running = [job.id for job in cluster.list_jobs() if job.state == "RUNNING"]
        except Unreachable:
            continue
        if running:
            cluster.rescale(running[0], parallelism)
            return
    msg = "no driver runs the job"
    raise NotRunning(msg)
