"""An epoch reports the watermark of a table, which an operator after the source creates."""

from __future__ import annotations

from pathlib import Path

from millstream.cluster.job_events import EpochDone
from millstream.table import TableEnvironment


def test_an_epoch_reports_the_watermark_of_a_table(t_env: TableEnvironment, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("1,2024-01-02 03:04:05\n2,2024-01-02 03:04:06\n")
    t_env.execute_sql(
        "CREATE TABLE timed (id INT, at TIMESTAMP(3), WATERMARK FOR at AS at - INTERVAL '1' SECOND) WITH "
        f"('connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'csv', 'source.monitor-interval' = '1 s')"
    )
    watermarks: list[int] = []

    def listen(event: object) -> None:
        if isinstance(event, EpochDone):
            watermarks.append(event.watermark)

    t_env._env.register_listener(listen)
    with t_env.execute_sql("SELECT id FROM timed").collect() as rows:
        assert sorted((next(rows)[0], next(rows)[0])) == [1, 2]
    assert 1704164645000 in watermarks
