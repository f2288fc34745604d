"""Texts of expressions, calls and windows in EXPLAIN.

Promises: column names in place of column indexes.
Does not know: plans."""

from __future__ import annotations

from millstream.sql.expressions.nodes import AggregateCall, Apply, Convert, Expression, Lit, Ref
from millstream.sql.logical import nodes as l
from millstream.sql.types import data_types as t


def describe_expression(expression: Expression, schema: t.RowType) -> str:
    """Return an expression as text, with column names."""
    match expression:
        case Ref(index=index):
            return schema.names[index]
        case Apply(function=function, args=args):
            inside = [describe_expression(arg, schema) for arg in args]
            if not function.replace(" ", "").isalnum() and len(inside) == 2:
                return f"({inside[0]} {function.removeprefix('TEMPORAL ')} {inside[1]})"
            return f"{function}({', '.join(inside)})"
        case Convert(operand=operand, type=data_type):
            return f"CAST({describe_expression(operand, schema)} AS {data_type})"
        case Lit():
            return str(expression)
    names = [describe_expression(arg, schema) for arg in expression.children()]
    return f"{type(expression).__name__.upper()}({', '.join(names)})"


def describe_projection(exprs: tuple[Expression, ...], output: t.RowType, schema: t.RowType) -> str:
    """Return a projection as text, with column names."""
    texts = []
    for expr, name in zip(exprs, output.names, strict=True):
        text = describe_expression(expr, schema)
        texts.append(text if text == name else f"{text} AS {name}")
    return ", ".join(texts)


def format_call(call: AggregateCall, schema: t.RowType) -> str:
    """Return an aggregate call as text, with column names."""
    args = ", ".join(schema.names[i] for i in call.args) or "*"
    tail = "" if call.filter is None else f" FILTER {schema.names[call.filter]}"
    return f"{call.function}({'DISTINCT ' if call.distinct else ''}{args}){tail}"


def format_window(window: l.WindowSpec, schema: t.RowType) -> str:
    """Return a window as text."""
    sizes = f"size=[{window.size} ms]" if window.kind != "SESSION" else f"gap=[{window.size} ms]"
    slide = (
        f", slide=[{window.slide} ms]"
        if window.kind == "HOP"
        else f", step=[{window.slide} ms]"
        if window.kind == "CUMULATE"
        else ""
    )
    return f"{window.kind}(time_col=[{schema.names[window.time]}], {sizes}{slide})"
