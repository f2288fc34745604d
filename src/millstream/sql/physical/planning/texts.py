"""Expressions, calls and windows as EXPLAIN shows them.

Promises: names in place of positions.
Does not know: plans."""

from __future__ import annotations

from millstream.sql.expressions.nodes import AggregateCall, Apply, Convert, Expression, Lit, Ref
from millstream.sql.logical import nodes as l
from millstream.sql.types import data_types as t


def described(expression: Expression, schema: t.RowType) -> str:
    """An expression with names in place of positions."""
    match expression:
        case Ref(index=index):
            return schema.names[index]
        case Apply(function=function, args=args):
            inside = [described(each, schema) for each in args]
            if not function.replace(" ", "").isalnum() and len(inside) == 2:
                return f"({inside[0]} {function.removeprefix('TEMPORAL ')} {inside[1]})"
            return f"{function}({', '.join(inside)})"
        case Convert(operand=operand, type=kind):
            return f"CAST({described(operand, schema)} AS {kind})"
        case Lit():
            return str(expression)
    names = [described(each, schema) for each in expression.children()]
    return f"{type(expression).__name__.upper()}({', '.join(names)})"


def selected(exprs: tuple[Expression, ...], output: t.RowType, schema: t.RowType) -> str:
    """A projection with names."""
    shown = []
    for each, name in zip(exprs, output.names, strict=True):
        text = described(each, schema)
        shown.append(text if text == name else f"{text} AS {name}")
    return ", ".join(shown)


def call_text(call: AggregateCall, schema: t.RowType) -> str:
    """An aggregate call with names."""
    inside = ", ".join(schema.names[i] for i in call.args) or "*"
    tail = "" if call.filter is None else f" FILTER {schema.names[call.filter]}"
    return f"{call.function}({'DISTINCT ' if call.distinct else ''}{inside}){tail}"


def window_text(window: l.WindowSpec, schema: t.RowType) -> str:
    """A window as EXPLAIN shows it."""
    sizes = f"size=[{window.size} ms]" if window.kind != "SESSION" else f"gap=[{window.size} ms]"
    slide = (
        f", slide=[{window.slide} ms]"
        if window.kind == "HOP"
        else f", step=[{window.slide} ms]"
        if window.kind == "CUMULATE"
        else ""
    )
    return f"{window.kind}(time_col=[{schema.names[window.time]}], {sizes}{slide})"
