"""Windows of the Table API: Tumble, Slide, Session and Over.

Promises: PyFlink's builders.
Does not know: how windows are computed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from millstream.sql.syntax import tree as s
from millstream.table.expression import Expression
from millstream.table.expression.terms import to_node

__all__ = [
    "GroupWindow",
    "Over",
    "OverWindow",
    "OverWindowPartitioned",
    "OverWindowPartitionedOrdered",
    "OverWindowPartitionedOrderedPreceding",
    "Session",
    "SessionWithGap",
    "SessionWithGapOnTime",
    "Slide",
    "SlideWithSize",
    "SlideWithSizeAndSlide",
    "SlideWithSizeAndSlideOnTime",
    "Tumble",
    "TumbleWithSize",
    "TumbleWithSizeOnTime",
]


@dataclass(frozen=True, eq=False)
class GroupWindow:
    """A group window with its alias.

    Attributes:
        function_name: The group window function of SQL: TUMBLE, HOP or SESSION.
        sizes: The arguments of the function after the time attribute.
        time: The time attribute.
        name: The alias of the window.

    Example:
        >>> from millstream.table.expressions import col, lit
        >>> isinstance(Tumble.over(lit(10).minutes).on(col("ts")).alias("w"), GroupWindow)
        True

    """

    function_name: str
    sizes: tuple[s.Expr, ...]
    time: s.Expr | None = None
    name: str = "w"

    def call(self) -> s.Call:
        """Return the call of the window function for GROUP BY."""
        assert self.time is not None
        return s.Call(0, self.function_name, (self.time, *self.sizes))


def _name(alias: Any) -> str:
    return alias._node.parts[-1] if isinstance(alias, Expression) and isinstance(alias._node, s.Name) else str(alias)


class TumbleWithSizeOnTime(GroupWindow):
    """A tumbling window with size and time attribute; the alias is missing.

    Example:
        >>> from millstream.table.expressions import col, lit
        >>> Tumble.over(lit(10).minutes).on(col("ts")).alias("w").name
        'w'

    """

    def alias(self, alias: Any) -> GroupWindow:
        """Set the alias by which `group_by` and `select` refer to the window.

        Args:
            alias: A name, or a column expression with this name.

        Returns:
            The complete window, for `Table.window`.

        """
        return GroupWindow(self.function_name, self.sizes, self.time, _name(alias))


class TumbleWithSize(GroupWindow):
    """A tumbling window with size; the time attribute is missing.

    Example:
        >>> from millstream.table.expressions import col, lit
        >>> window = Tumble.over(lit(10).minutes).on(col("ts")).alias("w")

    """

    def on(self, time_field: Any) -> TumbleWithSizeOnTime:
        """Set the time attribute by which rows are assigned to windows.

        Args:
            time_field: A column that is an event-time or processing-time attribute.

        Returns:
            The window, which needs an alias next.

        """
        return TumbleWithSizeOnTime(self.function_name, self.sizes, to_node(time_field))


class Tumble:
    """Build tumbling windows: windows of a fixed size that do not overlap.

    Example:
        >>> from millstream.table.expressions import col, lit
        >>> Tumble.over(lit(10).minutes).on(col("rowtime")).alias("w").name
        'w'

    """

    @staticmethod
    def over(size: Expression) -> TumbleWithSize:
        """Start a tumbling window.

        Args:
            size: The size of the windows, as in `lit(10).minutes`, or a number of rows, as in `row_interval(10)`.

        Returns:
            The window, which needs a time attribute next.

        """
        return TumbleWithSize("TUMBLE", (to_node(size),))


class SlideWithSizeAndSlideOnTime(TumbleWithSizeOnTime):
    """A sliding window with size, slide and time attribute; the alias is missing.

    Example:
        >>> from millstream.table.expressions import col, lit
        >>> Slide.over(lit(10).minutes).every(lit(5).minutes).on(col("ts")).alias("w").name
        'w'

    """


class SlideWithSizeAndSlide(GroupWindow):
    """A sliding window with size and slide; the time attribute is missing.

    Example:
        >>> from millstream.table.expressions import col, lit
        >>> window = Slide.over(lit(10).minutes).every(lit(5).minutes).on(col("ts")).alias("w")

    """

    def on(self, time_field: Any) -> SlideWithSizeAndSlideOnTime:
        """Set the time attribute by which rows are assigned to windows.

        Args:
            time_field: A column that is an event-time or processing-time attribute.

        Returns:
            The window, which needs an alias next.

        """
        return SlideWithSizeAndSlideOnTime(self.function_name, self.sizes, to_node(time_field))


class SlideWithSize(GroupWindow):
    """A sliding window with size; the slide is missing.

    Example:
        >>> from millstream.table.expressions import col, lit
        >>> window = Slide.over(lit(10).minutes).every(lit(5).minutes).on(col("ts")).alias("w")

    """

    def every(self, slide: Expression) -> SlideWithSizeAndSlide:
        """Set the slide, which is the interval between the starts of two windows.

        Args:
            slide: An interval. If it is shorter than the size, windows overlap and a row belongs to several.

        Returns:
            The window, which needs a time attribute next.

        """
        return SlideWithSizeAndSlide("HOP", (to_node(slide), *self.sizes))


class Slide:
    """Build sliding windows: windows of a fixed size that start at a fixed interval.

    Example:
        >>> from millstream.table.expressions import col, lit
        >>> Slide.over(lit(10).minutes).every(lit(5).minutes).on(col("rowtime")).alias("w").name
        'w'

    """

    @staticmethod
    def over(size: Expression) -> SlideWithSize:
        """Start a sliding window.

        Args:
            size: The size of the windows, as in `lit(10).minutes`, or a number of rows, as in `row_interval(10)`.

        Returns:
            The window, which needs a slide next.

        """
        return SlideWithSize("HOP", (to_node(size),))


class SessionWithGapOnTime(TumbleWithSizeOnTime):
    """A session window with gap and time attribute; the alias is missing.

    Example:
        >>> from millstream.table.expressions import col, lit
        >>> Session.with_gap(lit(30).seconds).on(col("ts")).alias("w").name
        'w'

    """


class SessionWithGap(GroupWindow):
    """A session window with gap; the time attribute is missing.

    Example:
        >>> from millstream.table.expressions import col, lit
        >>> window = Session.with_gap(lit(30).seconds).on(col("ts")).alias("w")

    """

    def on(self, time_field: Any) -> SessionWithGapOnTime:
        """Set the time attribute by which rows are assigned to sessions.

        Args:
            time_field: A column that is an event-time or processing-time attribute.

        Returns:
            The window, which needs an alias next.

        """
        return SessionWithGapOnTime(self.function_name, self.sizes, to_node(time_field))


class Session:
    """Build session windows: a session ends when no row arrives for the length of its gap.

    Example:
        >>> from millstream.table.expressions import col, lit
        >>> Session.with_gap(lit(30).seconds).on(col("rowtime")).alias("w").name
        'w'

    """

    @staticmethod
    def with_gap(gap: Expression) -> SessionWithGap:
        """Start a session window.

        Args:
            gap: The inactivity that ends a session, as in `lit(30).seconds`.

        Returns:
            The window, which needs a time attribute next.

        """
        return SessionWithGap("SESSION", (to_node(gap),))


@dataclass(frozen=True, eq=False)
class OverWindow:
    """An over window with its alias: for each row, a range of rows before it.

    Attributes:
        partition: The PARTITION BY expressions.
        order: The time attribute of ORDER BY.
        rows: Whether the frame counts rows (ROWS) or measures time (RANGE).
        lower: Where the frame begins.
        upper: Where the frame ends.
        name: The alias of the window.

    Example:
        >>> from millstream.table.expressions import col
        >>> isinstance(Over.order_by(col("ts")).alias("w"), OverWindow)
        True

    """

    partition: tuple[s.Expr, ...] = ()
    order: s.Expr | None = None
    rows: bool = False
    lower: s.FrameBound | None = None
    upper: s.FrameBound | None = None
    name: str = "w"

    def spec(self) -> s.WindowSpec:
        """Return the window specification for an OVER clause."""
        order = () if self.order is None else (s.OrderItem(0, self.order),)
        return s.WindowSpec(0, None, self.partition, order, self.rows, self.lower, self.upper)


def _create_frame_bound(bound: Any, side: int) -> tuple[s.FrameBound, bool]:
    """Return a bound of a frame, and whether it counts rows."""
    expr = to_node(bound)
    match expr:
        case s.Symbol(word=word):
            bound_type = "CURRENT" if word.startswith("CURRENT") else "UNBOUNDED"
            return s.FrameBound(0, bound_type, side), word.endswith("ROW")
        case s.Call(name="$ROWS", args=(count,)):
            return s.FrameBound(0, "OFFSET", side, count), True
    return s.FrameBound(0, "OFFSET", side, expr), False


class OverWindowPartitionedOrderedPreceding(OverWindow):
    """An over window with the lower bound of its frame; the alias is missing.

    Example:
        >>> from millstream.table.expressions import CURRENT_ROW, col, row_interval
        >>> window = Over.order_by(col("ts")).preceding(row_interval(5)).following(CURRENT_ROW).alias("w")

    """

    def alias(self, alias: Any) -> OverWindow:
        """Set the alias by which `Expression.over` refers to the window.

        Args:
            alias: A name, or a column expression with this name.

        Returns:
            The complete window, for `Table.over_window`.

        """
        return replace(self, name=_name(alias))

    def following(self, following: Any) -> OverWindowPartitionedOrderedPreceding:
        """Set the upper bound of the frame; the default is the current row.

        Args:
            following: `CURRENT_ROW` or `CURRENT_RANGE`.

        Returns:
            The window, which needs an alias next.

        """
        bound, _ = _create_frame_bound(following, 1)
        return replace(self, upper=bound)


class OverWindowPartitionedOrdered(OverWindow):
    """An over window with a time attribute; the frame and the alias are missing.

    Example:
        >>> from millstream.table.expressions import UNBOUNDED_RANGE, col
        >>> window = Over.order_by(col("ts")).preceding(UNBOUNDED_RANGE).alias("w")

    """

    def alias(self, alias: Any) -> OverWindow:
        """Set the alias by which `Expression.over` refers to the window.

        Args:
            alias: A name, or a column expression with this name.

        Returns:
            The complete window, for `Table.over_window`.

        """
        return replace(self, name=_name(alias))

    def preceding(self, preceding: Any) -> OverWindowPartitionedOrderedPreceding:
        """Set the lower bound of the frame.

        Args:
            preceding: `UNBOUNDED_ROW`, `UNBOUNDED_RANGE`, a number of rows as in `row_interval(3)`, or an interval of
                time.

        Returns:
            The window, which needs an alias next.

        """
        bound, rows = _create_frame_bound(preceding, -1)
        return OverWindowPartitionedOrderedPreceding(self.partition, self.order, rows, bound, self.upper, self.name)


class OverWindowPartitioned(OverWindow):
    """An over window with partition keys; the time attribute is missing.

    Example:
        >>> from millstream.table.expressions import col
        >>> window = Over.partition_by(col("user")).order_by(col("ts")).alias("w")

    """

    def order_by(self, order_by: Any) -> OverWindowPartitionedOrdered:
        """Set the time attribute by which the rows of a partition are ordered.

        Args:
            order_by: A column that is an event-time or processing-time attribute.

        Returns:
            The window, which needs a frame or an alias next.

        """
        return OverWindowPartitionedOrdered(self.partition, to_node(order_by))


class Over:
    """Build over windows: aggregates over a range of rows before each row, like OVER in SQL.

    Example:
        >>> from millstream.table.expressions import UNBOUNDED_RANGE, col
        >>> window = Over.partition_by(col("user")).order_by(col("rowtime")).preceding(UNBOUNDED_RANGE).alias("w")
        >>> window.name
        'w'

    """

    @classmethod
    def order_by(cls, order_by: Any) -> OverWindowPartitionedOrdered:
        """Start an over window without partitions.

        Args:
            order_by: A column that is an event-time or processing-time attribute.

        Returns:
            The window, which needs a frame or an alias next.

        """
        return OverWindowPartitionedOrdered((), to_node(order_by))

    @classmethod
    def partition_by(cls, *partition_by: Any) -> OverWindowPartitioned:
        """Start an over window that has its own frame for each combination of keys.

        Args:
            *partition_by: Columns or expressions.

        Returns:
            The window, which needs an order next.

        """
        return OverWindowPartitioned(tuple(map(to_node, partition_by)))
