"""The state browser: the entries of checkpoints and savepoints of a job, and what changed between two."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

from rest_cluster import Cluster, wait_for


def take_savepoint(cluster: Cluster, directory: Path) -> str:
    body = {"target-directory": str(directory), "cancel-job": False}
    _, answer = cluster.request("POST", f"/jobs/{cluster.job}/savepoints", body)
    path = f"/jobs/{cluster.job}/savepoints/{answer['request-id']}"
    return wait_for(lambda: (cluster.get(path)["operation"] or {}).get("location"))


def test_the_state_of_savepoints_and_checkpoints_is_read_by_page_and_key_and_compared(cluster: Cluster) -> None:
    snapshots = f"/jobs/{cluster.job}/millstream/snapshots"
    wait_for(lambda: cluster.client.get_job_status() and cluster.get(f"/jobs/{cluster.job}/checkpoints")["history"])
    path = take_savepoint(cluster, cluster.directory / "savepoints")
    listed = cluster.get(snapshots)
    assert {"name": "savepoint-1", "kind": "savepoint", "path": path, "time": None} in listed
    assert {one["kind"] for one in listed} == {"checkpoint", "savepoint"}

    savepoint = cluster.get(f"{snapshots}/savepoint-1")
    assert (savepoint["kind"], savepoint["form"], savepoint["path"]) == ("savepoint", "canonical", path)
    (reduce,) = (operator for operator in savepoint["operators"] if operator["uid"] == "sums")
    assert reduce["bytes"] > 0
    states = f"{snapshots}/savepoint-1/operators/{reduce['id']}"
    described = cluster.get(states)
    assert described["complete"]
    (state,) = described["states"]
    assert (state["entries"], state["keyed"], state["keyType"]) == (5, True, "Long")

    entries = f"{states}/entries?state={quote(state['state'])}"
    assert sorted(key_values(cluster.get(entries))) == ["0", "1", "2", "3", "4"]
    read, cursor = [], "0.0.0"
    while cursor:
        page = cluster.get(f"{entries}&limit=2&cursor={cursor}")
        assert len(page["entries"]) <= 2
        read += key_values(page)
        cursor = page["next"]
    assert sorted(read) == ["0", "1", "2", "3", "4"]
    one = cluster.get(f"{entries}&key=3")["entries"]
    assert [entry["key"] for entry in one] == ["3"]
    assert int(one[0]["value"]) % 5 in range(5)
    assert key_values(cluster.get(f"{entries}&search={one[0]['value']}")) == ["3"]
    assert cluster.get(f"{entries}&search=nothing")["scanned"] == 5
    assert cluster.get(f"{entries}&key=17")["entries"] == []

    latest = cluster.get(f"{snapshots}/latest")
    assert latest["name"].startswith("chk-")
    assert wait_for(
        lambda: cluster.get(f"/jobs/{cluster.job}/checkpoints")["history"][0]["id"] > latest["checkpoint"] + 2
    )
    kept = cluster.get(f"{snapshots}/{latest['name']}/operators/{reduce['id']}/entries?state={quote(state['state'])}")
    assert len(kept["entries"]) == 5, "the files of an opened checkpoint are kept while it is read"

    compared = cluster.get(f"{snapshots}/{latest['name']}/comparison?before=savepoint-1")
    (operator,) = (one for one in compared["operators"] if one["id"] == reduce["id"])
    assert compared["complete"]
    numbers = {name: operator["states"][0][name] for name in ("before", "after", "added", "removed", "changed")}
    assert numbers == {"before": 5, "after": 5, "added": 0, "removed": 0, "changed": 5}


def test_nothing_but_snapshots_of_the_job_is_read(cluster: Cluster) -> None:
    snapshots = f"/jobs/{cluster.job}/millstream/snapshots"
    latest = wait_for(lambda: cluster.request("GET", f"{snapshots}/latest")[1].get("operators"))
    operator = latest[-1]["id"]
    refused = {
        f"{snapshots}/chk-999999": 404,
        f"{snapshots}/savepoint-1": 404,
        f"{snapshots}/started-from": 404,
        f"{snapshots}/..%2f..%2fetc": 404,
        f"{snapshots}/{quote('/etc', safe='')}": 404,
        f"{snapshots}/chk-1x": 400,
        f"{snapshots}/latest/operators/{'0' * 32}": 404,
        f"{snapshots}/latest/operators/{operator}/entries?state=none": 404,
        f"{snapshots}/latest/operators/{operator}/entries?state=none&cursor=1.2": 400,
        f"{snapshots}/latest/operators/{operator}/entries?state=none&limit=0": 400,
        f"{snapshots}/latest/comparison?before=/etc": 400,
        f"/jobs/{'0' * 32}/millstream/snapshots": 404,
    }
    assert {path: cluster.request("GET", path)[0] for path in refused} == refused
    states = cluster.get(f"{snapshots}/latest/operators/{operator}")["states"]
    if states:
        entries = f"{snapshots}/latest/operators/{operator}/entries?state={quote(states[0]['state'])}"
        assert cluster.request("GET", f"{entries}&key=text")[0] == 400
        assert cluster.get(f"{entries}&cursor=999999.999999.999999999999")["entries"] == []


def key_values(page: dict[str, Any]) -> list[str]:
    return [entry["key"] for entry in page["entries"]]
