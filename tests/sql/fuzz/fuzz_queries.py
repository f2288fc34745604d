"""Random queries: a seed determines tables with NULLs and retractions, and a query with the same result in every
dialect.

Left out is what engines may answer differently by right: floating point sums, integer division, ties of a LIMIT; and
of streams, aggregates without GROUP BY, which have a result only if there was a row, also in Flink."""

from __future__ import annotations

import random
from dataclasses import dataclass

KINDS = {"int": "INT", "long": "BIGINT", "text": "STRING", "bool": "BOOLEAN", "date": "DATE", "dec": "DECIMAL(10, 2)"}
_WORDS = ("", "a", "b", "ab", "Ba", "x y", "é", "%", "a_b")
_DAYS = ("2024-01-31", "2024-02-29", "1999-12-31", "2024-03-01")
_NUMBERS = ("0.00", "1.25", "-3.50", "10.05", "99.99")
Column = tuple[str, str]  # name and type


@dataclass(frozen=True)
class Table:
    """Columns and changes: (sign, values). Values are text, or None for NULL; a row with the sign -1 is retracted."""

    columns: tuple[Column, ...]
    changes: tuple[tuple[int, tuple[str | None, ...]], ...]

    @property
    def appends(self) -> bool:
        return all(sign > 0 for sign, _ in self.changes)

    def rows(self) -> list[tuple[str | None, ...]]:
        """Return the rows that remain after all changes."""
        remaining: list[tuple[str | None, ...]] = []
        for sign, row in self.changes:
            if sign > 0:
                remaining.append(row)
            else:
                remaining.remove(row)
        return remaining


@dataclass(frozen=True)
class Case:
    """Tables by name and a query over them."""

    tables: dict[str, Table]
    sql: str


def case(seed: int, *, stream: bool) -> Case:
    """Return the case of a seed."""
    return _CaseGenerator(random.Random(seed), stream).case()


class _CaseGenerator:
    def __init__(self, rng: random.Random, stream: bool) -> None:
        self.r = rng
        self.forms = ["select", "select", "group", "group", "distinct", "set", *(() if stream else ("global",))]
        self.tables: dict[str, Table] = {}
        self.names = 0

    def name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def case(self) -> Case:
        for i in range(self.r.randint(1, 3)):
            self.tables[f"t{i}"] = self.table()
        sql, columns = self.query(self.r.randint(1, 3))
        if self.r.random() < 0.15:
            order = ", ".join(
                f"{name} {self.r.choice(['ASC', 'DESC'])} NULLS {self.r.choice(['FIRST', 'LAST'])}"
                for name, _ in columns
            )
            sql = f"SELECT * FROM ({sql}) AS top ORDER BY {order} LIMIT {self.r.randint(0, 5)}"
        return Case(self.tables, sql)

    # ----------------------------------------------------------------------------------------------------------- tables

    def table(self) -> Table:
        kinds = ["int", *(self.r.choice(list(KINDS)) for _ in range(self.r.randint(1, 4)))]
        columns = tuple((f"c{i}", kind) for i, kind in enumerate(kinds))
        changes: list[tuple[int, tuple[str | None, ...]]] = []
        remaining: list[tuple[str | None, ...]] = []
        retracts = self.r.random() < 0.5
        for _ in range(self.r.choice([0, 3, 8, 8, 15, 15, 25])):
            if retracts and remaining and self.r.random() < 0.35:
                removed = remaining.pop(self.r.randrange(len(remaining)))
                changes.append((-1, removed))
            row = tuple(self.value(kind) for kind in kinds)
            remaining.append(row)
            changes.append((1, row))
        return Table(columns, tuple(changes))

    def value(self, kind: str) -> str | None:
        if self.r.random() < 0.2:
            return None
        match kind:
            case "int":
                return str(self.r.randint(-3, 6))
            case "long":
                return str(self.r.choice([0, 1, 2, -7, 3_000_000_000]))
            case "text":
                return self.r.choice(_WORDS)
            case "bool":
                return self.r.choice(["true", "false"])
            case "date":
                return self.r.choice(_DAYS)
        return self.r.choice(_NUMBERS)

    # ---------------------------------------------------------------------------------------------------------- queries

    def query(self, depth: int) -> tuple[str, list[Column]]:
        form = self.r.choice(self.forms)
        if form == "set" and depth:
            return self.set_operation(depth - 1)
        source, columns = self.source(depth)
        where = f" WHERE {self.condition(columns, depth)}" if self.r.random() < 0.4 else ""
        if form in ("group", "global"):
            return self.grouped(source, columns, where, keyed=form == "group")
        items = [self.item(columns) for _ in range(self.r.randint(1, 4))]
        word = "SELECT DISTINCT" if form == "distinct" else "SELECT"
        text = ", ".join(f"{expr} AS {name}" for expr, name, _ in items)
        return f"{word} {text} FROM {source}{where}", [(name, kind) for _, name, kind in items]

    def item(self, columns: list[Column], kind: str | None = None) -> tuple[str, str, str]:
        kind = kind or self.r.choice([k for _, k in columns])
        return self.expr(kind, columns, self.r.randint(0, 2)), self.name("q"), kind

    def source(self, depth: int, *, alone: bool = False) -> tuple[str, list[Column]]:
        alias = self.name("x")
        if depth and self.r.random() < 0.4:
            inner, columns = self.query(depth - 1)
            text = f"({inner}) AS {alias}"
        else:
            name = self.r.choice(list(self.tables))
            columns, text = list(self.tables[name].columns), f"{name} AS {alias}"
        qualified = [(f"{alias}.{name}", kind) for name, kind in columns]
        if depth and not alone and self.r.random() < 0.5:
            return self.joined(text, qualified, depth - 1)
        return text, qualified

    def joined(self, remaining: str, columns: list[Column], depth: int) -> tuple[str, list[Column]]:
        right, others = self.source(depth, alone=True)
        pairs = [(a, b) for a, kind in columns for b, other in others if kind == other]
        if not pairs:
            return remaining, columns
        on = "{} = {}".format(*self.r.choice(pairs))
        if self.r.random() < 0.3:
            on += f" AND {self.boolean([*columns, *others], 1)}"
        kind = self.r.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        return f"{remaining} {kind} {right} ON {on}", [*columns, *others]

    def grouped(self, source: str, columns: list[Column], where: str, *, keyed: bool) -> tuple[str, list[Column]]:
        keys = [self.item(columns) for _ in range(self.r.randint(1, 2))] if keyed else []
        items = [*keys, *(self.aggregate(columns) for _ in range(self.r.randint(1, 3)))]
        text = ", ".join(f"{expr} AS {name}" for expr, name, _ in items)
        tail = f" GROUP BY {', '.join(expr for expr, _, _ in keys)}" if keys else ""
        if keys and self.r.random() < 0.3:
            tail += f" HAVING COUNT(*) {self.r.choice(['>', '<=', '<>'])} {self.r.randint(0, 3)}"
        return f"SELECT {text} FROM {source}{where}{tail}", [(name, kind) for _, name, kind in items]

    def aggregate(self, columns: list[Column]) -> tuple[str, str, str]:
        name, kind = self.r.choice(columns)
        function = self.r.choice(["COUNT", "COUNT", "SUM", "MIN", "MAX"])
        if function == "SUM" and kind not in ("int", "dec"):
            function = "COUNT"
        if function in ("MIN", "MAX") and kind == "bool":
            function = "COUNT"
        distinct = "DISTINCT " if function in ("COUNT", "SUM") and self.r.random() < 0.3 else ""
        inside = "*" if function == "COUNT" and not distinct and self.r.random() < 0.4 else f"{distinct}{name}"
        text = f"{function}({inside})"
        if self.r.random() < 0.2:
            text += f" FILTER (WHERE {self.boolean(columns, 1)})"
        result = "long" if function == "COUNT" else kind
        return text, self.name("q"), "sum" if function == "SUM" and kind == "dec" else result

    def set_operation(self, depth: int) -> tuple[str, list[Column]]:
        kinds = [self.r.choice(["int", "text", "bool", "date"]) for _ in range(self.r.randint(1, 3))]
        names = [self.name("q") for _ in kinds]
        parts = []
        for _ in range(2):
            source, columns = self.source(depth)
            where = f" WHERE {self.condition(columns, 0)}" if self.r.random() < 0.4 else ""
            exprs = [self.expr(kind, columns, 1) for kind in kinds]
            text = ", ".join(f"{expr} AS {name}" for expr, name in zip(exprs, names, strict=True))
            parts.append(f"(SELECT {text} FROM {source}{where})")
        word = self.r.choice(["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"])
        return f"{parts[0]} {word} {parts[1]}", list(zip(names, kinds, strict=True))

    # ------------------------------------------------------------------------------------------------------ expressions

    def condition(self, columns: list[Column], depth: int) -> str:
        """Return a condition of WHERE, sometimes with a subquery."""
        if depth and self.r.random() < 0.3:
            return self.subquery(columns)
        return self.boolean(columns, 2)

    def subquery(self, columns: list[Column]) -> str:
        name = self.r.choice(list(self.tables))
        alias = self.name("y")
        inner = [(f"{alias}.{column}", kind) for column, kind in self.tables[name].columns]
        pairs = [(a, b, kind) for a, kind in columns for b, other in inner if kind == other]
        if not pairs:
            return self.boolean(columns, 1)
        outer, own_type, kind = self.r.choice(pairs)
        form = self.r.choice(["in", "not in", "exists", "not exists", "scalar", "count"])
        match form:
            case "in":
                return f"{outer} IN (SELECT {own_type} FROM {name} AS {alias})"
            case "not in":
                return f"{outer} NOT IN (SELECT {own_type} FROM {name} AS {alias} WHERE {own_type} IS NOT NULL)"
            case "scalar" if kind != "bool":
                extreme = self.r.choice(["MIN", "MAX"])
                return f"{outer} = (SELECT {extreme}({own_type}) FROM {name} AS {alias})"
            case "count":
                count = f"(SELECT COUNT(*) FROM {name} AS {alias} WHERE {own_type} = {outer})"
                return f"{count} {self.r.choice(['>', '=', '<'])} {self.r.randint(0, 2)}"
        word = "NOT EXISTS" if form == "not exists" else "EXISTS"
        return f"{word} (SELECT * FROM {name} AS {alias} WHERE {own_type} = {outer})"

    def expr(self, kind: str, columns: list[Column], depth: int) -> str:
        known = [name for name, k in columns if k == kind]
        if known and (depth == 0 or self.r.random() < 0.5):
            return self.r.choice(known)
        if depth == 0 or kind in ("sum", "long", "date", "dec"):
            return self.r.choice(known) if known else self.literal(kind)
        if kind == "bool":
            return self.boolean(columns, depth - 1)
        form = self.r.choice(["case", "coalesce", "own", "own"])
        one, other = (self.expr(kind, columns, depth - 1) for _ in range(2))
        if form == "case":
            return f"CASE WHEN {self.boolean(columns, depth - 1)} THEN {one} ELSE {other} END"
        if form == "coalesce":
            return f"COALESCE({one}, {other})"
        if kind == "int":
            return f"({one} {self.r.choice(['+', '-', '*'])} {other})"
        return self.r.choice([f"({one} || {other})", f"SUBSTRING({one} FROM 1 FOR 2)", f"UPPER({one})"])

    def boolean(self, columns: list[Column], depth: int) -> str:
        name, kind = self.r.choice(columns)
        if depth and self.r.random() < 0.4:
            one, other = self.boolean(columns, depth - 1), self.boolean(columns, depth - 1)
            return self.r.choice(
                [f"({one} AND {other})", f"({one} OR {other})", f"(NOT {one})", f"({one} IS NOT TRUE)"]
            )
        if self.r.random() < 0.2:
            return f"({name} IS {self.r.choice(['NULL', 'NOT NULL'])})"
        if kind == "bool":
            return name
        if kind == "text" and self.r.random() < 0.3:
            return f"({name} LIKE '{self.r.choice(['a%', '%b', '_', '%', 'x y'])}')"
        known = [other for other, k in columns if k == kind]
        if self.r.random() < 0.3:
            items = ", ".join(self.literal(kind) for _ in range(2))
            return f"({name} {self.r.choice(['IN', 'NOT IN'])} ({items}))"
        other = self.r.choice(known) if self.r.random() < 0.5 else self.literal(kind)
        return f"({name} {self.r.choice(['=', '<>', '<', '<=', '>', '>='])} {other})"

    def literal(self, kind: str) -> str:
        value = None
        while value is None:
            value = self.value("dec" if kind == "sum" else kind)
        match kind:
            case "text":
                return f"'{value}'"
            case "date":
                return f"DATE '{value}'"
            case "bool":
                return value.upper()
            case "long":
                return f"CAST({value} AS BIGINT)"
            case "dec" | "sum":
                return f"CAST({value} AS DECIMAL(10, 2))"
        return f"({value})" if value.startswith("-") else value
