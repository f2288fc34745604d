"""Windows of the Table API: Tumble, Slide, Session and Over.

Promises: PyFlink's builders.
Does not know: how windows are computed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from millstream.sql.syntax import tree as s
from millstream.table.expression import Expression
from millstream.table.expression.terms import node

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
    """A window to group by, under a name."""

    kind: str
    sizes: tuple[s.Expr, ...]
    time: s.Expr | None = None
    name: str = "w"

    def call(self) -> s.Call:
        """The window as SQL's GROUP BY has it."""
        assert self.time is not None
        return s.Call(0, self.kind, (self.time, *self.sizes))


def _name(given: Any) -> str:
    return given._node.parts[-1] if isinstance(given, Expression) and isinstance(given._node, s.Name) else str(given)


class TumbleWithSizeOnTime(GroupWindow):
    """A tumbling window that needs a name."""

    def alias(self, alias: Any) -> GroupWindow:
        """Name the window."""
        return GroupWindow(self.kind, self.sizes, self.time, _name(alias))


class TumbleWithSize(GroupWindow):
    """A tumbling window that needs a time."""

    def on(self, time_field: Any) -> TumbleWithSizeOnTime:
        """The time attribute."""
        return TumbleWithSizeOnTime(self.kind, self.sizes, node(time_field))


class Tumble:
    """Windows one after the other."""

    @staticmethod
    def over(size: Expression) -> TumbleWithSize:
        """How long each is."""
        return TumbleWithSize("TUMBLE", (node(size),))


class SlideWithSizeAndSlideOnTime(TumbleWithSizeOnTime):
    """A sliding window that needs a name."""


class SlideWithSizeAndSlide(GroupWindow):
    """A sliding window that needs a time."""

    def on(self, time_field: Any) -> SlideWithSizeAndSlideOnTime:
        """The time attribute."""
        return SlideWithSizeAndSlideOnTime(self.kind, self.sizes, node(time_field))


class SlideWithSize(GroupWindow):
    """A sliding window that needs a slide."""

    def every(self, slide: Expression) -> SlideWithSizeAndSlide:
        """How far one begins behind the other."""
        return SlideWithSizeAndSlide("HOP", (node(slide), *self.sizes))


class Slide:
    """Windows that overlap."""

    @staticmethod
    def over(size: Expression) -> SlideWithSize:
        """How long each is."""
        return SlideWithSize("HOP", (node(size),))


class SessionWithGapOnTime(TumbleWithSizeOnTime):
    """A session window that needs a name."""


class SessionWithGap(GroupWindow):
    """A session window that needs a time."""

    def on(self, time_field: Any) -> SessionWithGapOnTime:
        """The time attribute."""
        return SessionWithGapOnTime(self.kind, self.sizes, node(time_field))


class Session:
    """Windows that silence ends."""

    @staticmethod
    def with_gap(gap: Expression) -> SessionWithGap:
        """How long the silence is."""
        return SessionWithGap("SESSION", (node(gap),))


@dataclass(frozen=True, eq=False)
class OverWindow:
    """A frame of rows before each row, under a name."""

    partition: tuple[s.Expr, ...] = ()
    order: s.Expr | None = None
    rows: bool = False
    lower: s.FrameBound | None = None
    upper: s.FrameBound | None = None
    name: str = "w"

    def spec(self) -> s.WindowSpec:
        """The window as SQL's OVER has it."""
        order = () if self.order is None else (s.OrderItem(0, self.order),)
        return s.WindowSpec(0, None, self.partition, order, self.rows, self.lower, self.upper)


def _bound(given: Any, side: int) -> tuple[s.FrameBound, bool]:
    expr = node(given)
    match expr:
        case s.Symbol(word=word):
            kind = "CURRENT" if word.startswith("CURRENT") else "UNBOUNDED"
            return s.FrameBound(0, kind, side), word.endswith("ROW")
        case s.Call(name="$ROWS", args=(count,)):
            return s.FrameBound(0, "OFFSET", side, count), True
    return s.FrameBound(0, "OFFSET", side, expr), False


class OverWindowPartitionedOrderedPreceding(OverWindow):
    """An over window that needs a name."""

    def alias(self, alias: Any) -> OverWindow:
        """Name the window."""
        return replace(self, name=_name(alias))

    def following(self, following: Any) -> OverWindowPartitionedOrderedPreceding:
        """Where the frame ends."""
        bound, _ = _bound(following, 1)
        return replace(self, upper=bound)


class OverWindowPartitionedOrdered(OverWindow):
    """An over window that needs a frame or a name."""

    def alias(self, alias: Any) -> OverWindow:
        """Name the window."""
        return replace(self, name=_name(alias))

    def preceding(self, preceding: Any) -> OverWindowPartitionedOrderedPreceding:
        """Where the frame begins."""
        bound, rows = _bound(preceding, -1)
        return OverWindowPartitionedOrderedPreceding(self.partition, self.order, rows, bound, self.upper, self.name)


class OverWindowPartitioned(OverWindow):
    """An over window that needs an order."""

    def order_by(self, order_by: Any) -> OverWindowPartitionedOrdered:
        """The time attribute."""
        return OverWindowPartitionedOrdered(self.partition, node(order_by))


class Over:
    """Frames of rows before each row."""

    @classmethod
    def order_by(cls, order_by: Any) -> OverWindowPartitionedOrdered:
        """The time attribute."""
        return OverWindowPartitionedOrdered((), node(order_by))

    @classmethod
    def partition_by(cls, *partition_by: Any) -> OverWindowPartitioned:
        """The columns that rows must share."""
        return OverWindowPartitioned(tuple(map(node, partition_by)))
