"""SET and TableConfig.set refuse misspelt options and wrong values at once."""

from __future__ import annotations

import pytest

from millstream.errors import UserError
from millstream.table import TableConfig, TableEnvironment

WRONG = [
    ("paralelism.default", "4", r"unknown option 'paralelism.default'.*did you mean 'parallelism.default'"),
    ("table.exec.state.tttl", "1 h", r"unknown option 'table.exec.state.tttl'.*did you mean 'table.exec.state.ttl'"),
    ("parallelism.default", "three", r"three.*parallelism.default"),
    ("table.exec.mini-batch.enabled", "perhaps", r"perhaps.*mini-batch.enabled"),
    ("table.exec.state.ttl", "soon", r"soon.*table.exec.state.ttl"),
    ("table.sql-dialect", "unknown", r"unknown.*table.sql-dialect"),
    ("table.local-time-zone", "Mars/Base", r"Mars/Base.*table.local-time-zone"),
]
RIGHT = [
    ("parallelism.default", "4"),
    ("table.exec.state.ttl", "1 h"),
    ("table.optimizer.reuse-source-enabled", "false"),
    ("table.sql-dialect", "hive"),
    ("table.local-time-zone", "Asia/Shanghai"),
    ("pipeline.name", "mine"),
    ("my.own.key", "anything"),
]


@pytest.mark.parametrize(("key", "value", "message"), WRONG)
def test_a_wrong_setting_is_refused(t_env: TableEnvironment, key: str, value: str, message: str) -> None:
    before = t_env.get_config().to_map()
    for set_option in (t_env.get_config().set, lambda k, v: t_env.execute_sql(f"SET '{k}' = '{v}'")):
        with pytest.raises(UserError, match=f"(?s){message}"):
            set_option(key, value)
    assert t_env.get_config().to_map() == before
    with t_env.execute_sql("SELECT 1").collect() as rows:
        assert len(list(rows)) == 1


@pytest.mark.parametrize(("key", "value"), RIGHT)
def test_other_settings_are_accepted(t_env: TableEnvironment, key: str, value: str) -> None:
    t_env.execute_sql(f"SET '{key}' = '{value}'")
    assert TableConfig.get_default().set(key, value).get(key, "") == value
