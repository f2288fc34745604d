"""What the web UI shows of a running job beside Flink's resources: records that were dropped, and log lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from rest_cluster import Cluster, wait_for

from millstream.client.job_client import JobClient
from millstream.cluster import entrypoint
from millstream.cluster.log_lines import LogLines
from millstream.cluster.rest.application import create_application
from millstream.cluster.rest.context import RestContext
from millstream.cluster.rest.server import RestServer
from millstream.common import Configuration, Duration, Time, Types, WatermarkStrategy
from millstream.datastream import StreamExecutionEnvironment
from millstream.datastream.connectors.number_seq import NumberSequenceSource
from millstream.datastream.window import TumblingEventTimeWindows


def start_late_job(*, show: bool) -> JobClient:
    """A job in which every tenth record is far behind the watermark."""
    configuration = Configuration.from_dict(
        {
            "millstream.epoch.max-records": "20",
            "millstream.epoch.min-interval": "20 ms",
            "millstream.rest.show-dropped-records": str(show),
        }
    )
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(1)).with_timestamp_assigner(
        lambda n, _: 1 if n % 10 == 0 else n * 1000
    )
    numbers = env.from_source(NumberSequenceSource(0, 10**9), strategy, "numbers")
    windows = numbers.key_by(lambda n: n % 2, Types.LONG()).window(TumblingEventTimeWindows.of(Time.seconds(5)))
    windows.reduce(lambda a, b: a + b).map(lambda n: print(f"sum <b>{n}</b>")).print()
    return env.execute_async("late numbers")


@pytest.fixture
def server(inline_engine: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[RestServer]:
    monkeypatch.setattr(entrypoint, "DISPATCHER", dispatcher := entrypoint.Dispatcher())
    monkeypatch.setattr(entrypoint, "LOG_LINES", lines := LogLines())  # those of other tests are in the old one
    context = RestContext(dispatcher, entrypoint.SystemClock(), entrypoint.new_id, log_lines=lines)
    server = RestServer.start(create_application(context), "127.0.0.1", "0")
    yield server
    server.stop()


@pytest.mark.parametrize("show", [True, False], ids=["shown", "hidden"])
def test_late_records_are_shown_unless_an_option_hides_them(server: RestServer, tmp_path: Path, *, show: bool) -> None:
    cluster = Cluster(server.address, start_late_job(show=show), tmp_path)
    vertices = cluster.get(f"/jobs/{cluster.job}/millstream/graph")["vertices"]
    dropped = wait_for(lambda: cluster.get(f"/jobs/{cluster.job}/millstream/vertices/{vertices[1]['id']}/dropped"))
    assert cluster.get(f"/jobs/{cluster.job}/millstream/vertices/{vertices[0]['id']}/dropped") == []
    record = dropped[0]
    assert record["reason"] == "late: its time is 1"
    hot_keys = cluster.get(f"/jobs/{cluster.job}/millstream/vertices/{vertices[1]['id']}")["hotKeys"]
    if show:
        assert (int(record["value"]) % 10, record["key"]) == (0, "0")
        assert [key["key"] for key in sorted(hot_keys, key=lambda key: key["key"])] == ["0", "1"]
    else:
        assert (record["value"], record["key"]) == ("(hidden)", "(hidden)")
        assert hot_keys == []

    lines = wait_for(
        lambda: [line for line in cluster.get(f"/jobs/{cluster.job}/millstream/log") if line["source"] == "tasks"]
    )
    assert lines[0]["text"].startswith("sum <b>")
    newest = cluster.get(f"/jobs/{cluster.job}/millstream/log")[-1]["number"]
    assert all(line["number"] > newest for line in cluster.get(f"/jobs/{cluster.job}/millstream/log?after={newest}"))
    assert cluster.request("GET", f"/jobs/{cluster.job}/millstream/log?after=-1")[0] == 400
    cluster.client.cancel()
    cluster.client.wait(30)
    texts = [line["text"] for line in cluster.get(f"/jobs/{cluster.job}/millstream/log")]
    assert "the status is CANCELED" in texts
