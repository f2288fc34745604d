"""Flame graphs: Flink's path and fields, and tasks are sampled only after somebody asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rest_cluster import Cluster, wait_for

from millstream.cluster import entrypoint


def names(node: dict[str, Any]) -> Iterator[str]:
    yield node["name"]
    for child in node["children"]:
        yield from names(child)


def test_a_vertex_is_sampled_when_its_flame_graph_is_requested(cluster: Cluster) -> None:
    graph = wait_for(lambda: cluster.get(f"/jobs/{cluster.job}/millstream/graph"))
    source, reduce = (vertex["id"] for vertex in graph["vertices"])
    path = f"/jobs/{cluster.job}/vertices/{reduce}/flamegraph"
    job = entrypoint.DISPATCHER.job(cluster.job)
    assert job.samples.flame_graphs.sampled() == {}
    assert cluster.get(path) == {"endTimestamp": -3, "data": None}
    assert job.samples.flame_graphs.sampled().keys() == {reduce}

    def sampled() -> Any:
        data = cluster.get(path)["data"]
        return data if data and any("Task." in name for name in names(data)) else None

    data = wait_for(sampled)
    assert data["name"] == "root"
    assert data["value"] == sum(child["value"] for child in data["children"])
    assert cluster.get(f"{path}?type=on_cpu&subtaskindex=1")["endTimestamp"] > 0
    assert source not in job.samples.flame_graphs.sampled()
    assert cluster.request("GET", f"{path}?type=other")[0] == 400
    assert cluster.request("GET", f"{path}?subtaskindex=2")[0] == 404
    cluster.client.cancel()
    cluster.client.wait(30)
    assert cluster.get(path) == {"endTimestamp": -1, "data": None}


def test_flame_graphs_are_off_unless_they_are_enabled(cluster: Cluster) -> None:
    job = entrypoint.DISPATCHER.job(cluster.job)
    job.samples.flame_graphs.enabled = False
    vertex = cluster.get(f"/jobs/{cluster.job}/millstream/graph")["vertices"][0]["id"]
    path = f"/jobs/{cluster.job}/vertices/{vertex}/flamegraph"
    assert cluster.get(path) == {"endTimestamp": -2, "data": None}
    assert job.samples.flame_graphs.sampled() == {}
