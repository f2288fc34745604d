"""What a SQL operator declares about itself beside its logic.

A spec is the only place that knows an operator: what its state depends on, what its output columns mean, and which
input columns it passes on. Identities, placements and compiled plans are derived from it. `library.py` lists all specs.

Promises: an operator cannot be defined without saying what its state depends on.
Does not know: programs, savepoints."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from millstream.runtime.operator import OperatorSpec
from millstream.sql.expressions.stable_text import format_columns, shorten
from millstream.sql.logical.nodes import WindowSpec
from millstream.sql.types import data_types as t

ColumnTexts = Sequence[str]


@dataclass(frozen=True)
class PlanContext:
    """The position of an operator in a plan: its inputs, and how they are partitioned.

    Attributes:
        name: The name of the operator, as EXPLAIN shows it, or of the table that it reads.
        inputs: For each input, the text of each column: the table and column it comes from, or its expression.
        schemas: The schema of each input.
        output: The schema of the output.
        partition_keys: The columns by which the first input is partitioned.

    """

    name: str
    inputs: tuple[ColumnTexts, ...]
    schemas: tuple[t.RowType, ...]
    output: t.RowType
    partition_keys: tuple[int, ...] = ()

    def rows(self, side: int = 0) -> str:
        """Return all columns of an input with their types, as text."""
        schema = self.schemas[side]
        return format_columns(range(len(schema)), self.inputs[side], schema)


@dataclass(frozen=True)
class StateTraits:
    """What the state of an operator depends on, as text.

    Attributes:
        fixed: If one of these changes, the state cannot be read: keys, aggregates, the rows that are kept.
        free: These may change: conditions and bounds, which decide which rows arrive, not what is kept of them.

    """

    fixed: Mapping[str, str] = field(default_factory=dict)
    free: Mapping[str, str] = field(default_factory=dict)


STATELESS = StateTraits()


class SqlOperatorSpec(OperatorSpec):
    """The description of a SQL operator."""

    @abstractmethod
    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Return what the state depends on; `STATELESS` if the operator keeps none and has no expression to show."""

    def column_texts(self, plan: PlanContext) -> ColumnTexts:
        """Return the text of each output column. By default, columns pass, and further ones are numbered."""
        return pass_columns(plan)

    def kept_columns(self, plan: PlanContext, side: int) -> Mapping[int, tuple[int, ...]]:
        """Return, for each input column that is passed on unchanged, its indexes in the output. By default, none is."""
        return {}


class RowPassingSpec(SqlOperatorSpec):
    """An operator whose output rows begin with the columns of its input, unchanged."""

    def kept_columns(self, plan: PlanContext, side: int) -> Mapping[int, tuple[int, ...]]:
        """Return the input columns at their own indexes."""
        return map_same_columns(min(len(plan.schemas[0]), len(plan.output)))


class PartialAggregateSpec(SqlOperatorSpec):
    """An operator that aggregates rows before an exchange. The operator after it describes its state by those rows."""

    keys: tuple[int, ...]

    def state_traits(self, plan: PlanContext) -> StateTraits:
        """Declare that no state is kept from epoch to epoch."""
        return STATELESS

    def kept_columns(self, plan: PlanContext, side: int) -> Mapping[int, tuple[int, ...]]:
        """Return the indexes of the keys in the output: they are the first columns."""
        return map_keys_first(self.keys)


def pass_columns(plan: PlanContext) -> ColumnTexts:
    """Return the texts of all inputs' columns, or of the first input's; further columns are numbered."""
    width = len(plan.output)
    passed = [text for columns in plan.inputs for text in columns]
    if len(passed) > width:
        passed = list(plan.inputs[0])
    if len(passed) > width:
        return plan.output.names
    return [*passed, *(f"{plan.name}.{i}" for i in range(width - len(passed)))]


def map_same_columns(width: int) -> dict[int, tuple[int, ...]]:
    """Return the mapping of the first columns to themselves."""
    return {i: (i,) for i in range(width)}


def map_keys_first(keys: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """Return the mapping of key columns to the first columns of the output."""
    return {key: (index,) for index, key in enumerate(keys)}


def format_flag(condition: bool) -> str:
    """Return "yes" if the condition holds, as the text of a trait; traits with an empty text are left out."""
    return "yes" if condition else ""


def format_window(window: WindowSpec, columns: ColumnTexts) -> str:
    """Return a window function over columns as text."""
    sizes = ", ".join(str(size) for size in (window.size, window.slide, window.offset) if size)
    parts = [columns[window.time], sizes, *(columns[i] for i in window.partition)]
    return shorten(f"{window.kind}({', '.join(parts)}){' PROCTIME' if window.processing else ''}")
