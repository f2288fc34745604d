"""ResultKind: whether the result of a statement has rows.

Promises: PyFlink's names.
Does not know: results."""

from __future__ import annotations

from enum import Enum


class ResultKind(Enum):
    """Whether a statement succeeded without rows (`SUCCESS`) or with rows (`SUCCESS_WITH_CONTENT`).

    Example:
        >>> from millstream.table import EnvironmentSettings, TableEnvironment
        >>> t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        >>> t_env.execute_sql("CREATE TABLE ignored (n INT) WITH ('connector' = 'blackhole')").get_result_kind()
        <ResultKind.SUCCESS: 0>

    """

    SUCCESS = 0
    SUCCESS_WITH_CONTENT = 1
