"""A metric: its scope, its name and its value at one time.

Promises: Flink's scopes, variables and formats of scopes.
Does not know: where values come from, who reports them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

Value = int | float | str | bool


class ScopeType(Enum):
    """The type of a scope. The value is its name in the options `metrics.scope.*` and its default format."""

    JOB_MANAGER = ("jm", "<host>.jobmanager")
    JOB = ("jm-job", "<host>.jobmanager.<job_name>")
    TASK_MANAGER = ("tm", "<host>.taskmanager.<tm_id>")
    TASK = ("task", "<host>.taskmanager.<tm_id>.<job_name>.<task_name>.<subtask_index>")
    OPERATOR = ("operator", "<host>.taskmanager.<tm_id>.<job_name>.<operator_name>.<subtask_index>")

    @property
    def option(self) -> str:
        """The key of the option with the format."""
        return f"metrics.scope.{self.value[0]}"

    @property
    def default_format(self) -> str:
        """The format if the option is not set."""
        return self.value[1]

    @property
    def groups(self) -> tuple[str, ...]:
        """The logical scope, from which reporters with labels make the beginning of the name."""
        return _GROUPS[self]


_GROUPS = {
    ScopeType.JOB_MANAGER: ("jobmanager",),
    ScopeType.JOB: ("jobmanager", "job"),
    ScopeType.TASK_MANAGER: ("taskmanager",),
    ScopeType.TASK: ("taskmanager", "job", "task"),
    ScopeType.OPERATOR: ("taskmanager", "job", "task", "operator"),
}
_VARIABLE = re.compile("<([a-z_]+)>")


@dataclass(frozen=True)
class Scope:
    """What a metric belongs to; `variables` are Flink's, without angle brackets."""

    type: ScopeType
    variables: Mapping[str, str]

    def format(self, pattern: str) -> str:
        """Replace the variables of a format such as `<host>.<job_name>`; a variable without a value stays."""
        return _VARIABLE.sub(lambda match: self.variables.get(match[1], match[0]), pattern)


@dataclass(frozen=True)
class Metric:
    """The value of a metric at one time. A name has dots between its groups."""

    scope: Scope
    name: str
    value: Value

    @property
    def number(self) -> float | None:
        """The value as a number; None for a text."""
        return None if isinstance(self.value, str) else float(self.value)
