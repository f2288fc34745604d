"""A subtask without input does not hold back the watermark."""

from pathlib import Path
from threading import Timer

import pytest

from millstream.table import EnvironmentSettings, TableEnvironment


@pytest.mark.usefixtures("inline_engine")
def test_windows_fire_if_there_are_fewer_files_than_subtasks(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("".join(f"2026-01-01 00:00:{second:02}\n" for second in (1, 2, 11, 21)))
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "3")
    env.execute_sql(
        "CREATE TABLE t (ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', "
        f"'path' = '{tmp_path}', 'format' = 'csv', 'source.monitor-interval' = '10 ms')"
    )
    query = "SELECT COUNT(*) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start"
    result = env.execute_sql(f"{query}, window_end")
    timeout = Timer(60, result.get_job_client().cancel)  # type: ignore[union-attr]
    timeout.start()
    try:
        with result.collect() as rows:
            assert [next(rows)[0] for _ in range(2)] == [2, 1]
    finally:
        timeout.cancel()
