"""The grammar of queries: SELECT, FROM with its joins and table functions, set operations, WITH.

Promises: INTERSECT binds before UNION and EXCEPT; ORDER BY and LIMIT belong to the whole query.
Does not know: what names mean."""

from __future__ import annotations

from millstream.sql.errors import SqlNotSupported
from millstream.sql.syntax import tree as s
from millstream.sql.syntax.cursor import RESERVED
from millstream.sql.syntax.expressions import ExpressionGrammar

_JOIN_WORDS = ("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL")
_OF_MODELS = {"ML_PREDICT": "models", "ML_EVALUATE": "models", "VECTOR_SEARCH": "searches in vector stores"}
_NOT_AN_ALIAS = RESERVED | {"FOR", "WINDOW"}


class QueryGrammar(ExpressionGrammar):
    """Queries."""

    def query(self) -> s.Query:
        """A whole query, with WITH, ORDER BY and LIMIT."""
        return self.deeper(self._query)

    def _query(self) -> s.Query:
        at = self.at
        ctes: tuple[tuple[str, tuple[str, ...], s.Query], ...] = ()
        if self.take("WITH"):
            if self.is_word("RECURSIVE"):
                self.fail(None, hint="recursive queries are not supported")
            ctes = self.many(self._cte)
        body = self._union()
        order = self._order_by() if self.is_word("ORDER") else ()
        limit = offset = None
        while self.is_any("LIMIT", "OFFSET", "FETCH"):
            word = self.advance().key
            if word == "LIMIT":
                if not self.take("ALL"):
                    limit = self.integer()
                    if self.take_op(","):
                        offset, limit = limit, self.integer()
            elif word == "OFFSET":
                offset = self.integer()
                self.take_any("ROW", "ROWS")
            else:
                if self.take_any("FIRST", "NEXT") is None:
                    self.fail("FIRST or NEXT")
                limit = self.integer() if self.token.kind == "number" else 1
                if self.take_any("ROW", "ROWS") is None:
                    self.fail("ROWS")
                self.expect("ONLY")
        if not ctes and not order and limit is None and offset is None and isinstance(body, s.Query):
            return body
        if isinstance(body, s.Query):
            inner = s.Select(body.at, ((s.Star(body.at), None),), s.Derived(body.at, body))
            plain = not (body.order or body.limit is not None or body.offset is not None or body.ctes)
            return s.Query(at, body.body if plain else inner, ctes, order, limit, offset)
        return s.Query(at, body, ctes, order, limit, offset)

    def _cte(self) -> tuple[str, tuple[str, ...], s.Query]:
        name = self.name()
        columns = self.wrapped(self.name) if self.is_op("(") else ()
        self.expect("AS")
        self.expect_op("(")
        query = self.query()
        self.expect_op(")")
        return name, columns, query

    def _union(self) -> s.Body | s.Query:
        left = self._intersect()
        while self.is_any("UNION", "EXCEPT", "MINUS"):
            token = self.advance()
            left = self._combined(token.start, "EXCEPT" if token.key == "MINUS" else token.key, left, self._intersect)
        return left

    def _intersect(self) -> s.Body | s.Query:
        left = self._simple_query()
        while self.is_word("INTERSECT"):
            at = self.advance().start
            left = self._combined(at, "INTERSECT", left, self._simple_query)
        return left

    def _combined(self, at: int, operator: str, left: s.Body | s.Query, parse: object) -> s.Body:
        every = self.take("ALL")
        if not every:
            self.take("DISTINCT")
        right: s.Body | s.Query = parse()  # type: ignore[operator]
        return s.SetOperation(at, operator, every, _as_query(left), _as_query(right))

    def _simple_query(self) -> s.Body | s.Query:
        at = self.at
        if self.is_op("("):
            self.advance()
            query = self.query()
            self.expect_op(")")
            return query
        if self.take("VALUES"):
            return s.ValuesList(at, self.many(self._values_row))
        if self.is_word("TABLE") and self.ahead().kind in ("word", "quoted"):
            self.advance()
            return s.Select(at, ((s.Star(at), None),), s.TableName(self.at, self.path()))
        if not self.is_word("SELECT"):
            self.fail("SELECT, VALUES or WITH")
        return self.deeper(self._select)

    def _values_row(self) -> tuple[s.Expr, ...]:
        self.take("ROW")
        if self.is_op("("):
            return self.wrapped(self.expression)
        return (self.expression(),)

    def _select(self) -> s.Select:
        at = self.advance().start
        hints = self.hints()
        distinct = self.take("DISTINCT")
        if not distinct:
            self.take("ALL")
        items = self.many(self._item)
        source = where = group = having = qualify = None
        windows: tuple[tuple[str, s.WindowSpec], ...] = ()
        if self.take("FROM"):
            source = self._sources()
        if self.take("WHERE"):
            where = self.expression()
        if self.is_word("GROUP"):
            self.expect("GROUP", "BY")
            group = self.many(self._group_item)
        if self.take("HAVING"):
            having = self.expression()
        if self.take("WINDOW"):
            windows = self.many(self._named_window)
        if self.take("QUALIFY"):
            qualify = self.expression()
        return s.Select(at, items, source, where, group, having, windows, qualify, distinct, hints)

    def _item(self) -> tuple[s.Expr, str | None]:
        if self.is_word("FROM") and self.ahead(-1).text == ",":
            self.fail("an expression", hint="is there a comma too many before FROM?")
        expr = self.expression()
        return expr, self._alias()

    def _alias(self) -> str | None:
        if self.take("AS"):
            return self.name(any_word=self.token.kind == "word" and self.token.key not in ("FROM", "WHERE", "SELECT"))
        token = self.token
        if token.kind == "quoted" or (token.kind == "word" and token.key not in _NOT_AN_ALIAS):
            return self.advance().text
        return None

    def _named_window(self) -> tuple[str, s.WindowSpec]:
        name = self.name()
        self.expect("AS")
        return name, self.window_spec()

    def _group_item(self) -> s.GroupItem:
        at = self.at
        if self.is_word("GROUPING", "SETS"):
            self.advance(), self.advance()
            return s.GroupItem(at, "SETS", self.wrapped(self._grouping_set))
        if self.is_any("ROLLUP", "CUBE") and self.ahead().text == "(":
            kind = self.advance().key
            return s.GroupItem(at, kind, self.wrapped(self._grouping_set))
        if self.is_op("(") and self.ahead().text == ")":
            self.advance(), self.advance()
            return s.GroupItem(at, "SETS", ((),))
        return s.GroupItem(at, "PLAIN", ((self.expression(),),))

    def _grouping_set(self) -> tuple[s.Expr, ...]:
        if self.is_op("(") and self.ahead().text == ")":
            self.advance(), self.advance()
            return ()
        expr = self.expression()
        return expr.args if isinstance(expr, s.Call) and expr.name == "ROW" else (expr,)

    # --------------------------------------------------------------------------------------------------------- FROM

    def _sources(self) -> s.Source:
        left = self._joined()
        while self.is_op(","):
            at = self.advance().start
            left = s.Joined(at, "CROSS", left, self._joined())
        return left

    def _joined(self) -> s.Source:
        left = self._factor()
        while self.is_any(*_JOIN_WORDS):
            at = self.at
            natural = self.take("NATURAL")
            kind = self.take_any("INNER", "LEFT", "RIGHT", "FULL", "CROSS") or "INNER"
            if kind in ("LEFT", "RIGHT", "FULL"):
                self.take("OUTER")
            self.expect("JOIN")
            right = self._factor()
            condition: s.Expr | None = None
            using: tuple[str, ...] = ()
            if self.take("ON"):
                condition = self.expression()
            elif self.take("USING"):
                using = self.wrapped(self.name)
            elif kind not in ("CROSS", "INNER") and not natural:
                self.fail("ON or USING")
            left = s.Joined(at, kind, left, right, condition, using, natural)
        return left

    def _factor(self) -> s.Source:
        source = self._table()
        if self.is_word("MATCH_RECOGNIZE"):
            source = self._match(source)
        if self.is_word("TABLESAMPLE"):
            self.fail(None, hint="samples are not supported")
        return source

    def _named_columns(self) -> tuple[str | None, tuple[str, ...]]:
        alias = None
        if not self.is_word("MATCH_RECOGNIZE"):
            alias = self._alias()
        columns = self.wrapped(self.name) if alias is not None and self.is_op("(") else ()
        return alias, columns

    def _table(self) -> s.Source:
        at = self.at
        lateral = self.take("LATERAL")
        if self.is_word("UNNEST"):
            self.advance()
            self.expect_op("(")
            call = s.Call(at, "UNNEST", (self.expression(),))
            self.expect_op(")")
            ordinality = self.take("WITH", "ORDINALITY")
            return s.TableCall(at, call, *self._named_columns(), ordinality)
        if self.is_word("TABLE") and self.ahead().text == "(":
            self.advance()
            self.expect_op("(")
            call = self._table_function()
            self.expect_op(")")
            return s.TableCall(at, call, *self._named_columns())
        if self.is_op("("):
            return self._parenthesized(at, lateral)
        if self.is_word("TABLE"):
            self.advance()
        if self.is_word("VALUES"):
            return s.Derived(at, self.query(), *self._named_columns(), lateral)
        if lateral and self.ahead().text != "(":
            self.fail("TABLE( or a query in parentheses")
        path = self.path()
        if self.is_op("("):
            return s.TableCall(at, self._called_table(at, path), *self._named_columns())
        hints = self.hints()
        as_of = self._as_of()
        alias, columns = self._named_columns()
        if as_of is None and alias is not None:
            as_of = self._as_of()
        hints = hints or self.hints()
        return s.TableName(at, path, alias, columns, hints, as_of)

    def _as_of(self) -> s.Expr | None:
        if not self.take("FOR", "SYSTEM_TIME"):
            return None
        self.expect("AS", "OF")
        return self.expression()

    def _parenthesized(self, at: int, lateral: bool) -> s.Source:
        if self.is_query():
            mark = self.mark()
            self.advance()
            query = self.query()
            if self.is_op(")"):
                self.advance()
                return s.Derived(at, query, *self._named_columns(), lateral)
            self.rewind(mark)
        self.expect_op("(")
        source = self._sources()
        self.expect_op(")")
        return source

    def _table_function(self) -> s.Call:
        return self._called_table(self.at, self.path())

    def _called_table(self, at: int, path: tuple[str, ...]) -> s.Call:
        name = path[-1].upper()
        if name in _OF_MODELS:
            message = f"{name} is not supported: {_OF_MODELS[name]} are not supported"
            raise SqlNotSupported(message, at=at, text=self.text, hint="call them from a Python function")
        found = self._called(at, path)
        if not isinstance(found, s.Call):
            self.fail("a table function", at=at)
        return found

    def hints(self) -> tuple[s.Hint, ...]:
        """/*+ OPTIONS('a'='b'), BROADCAST(t) */."""
        found: list[s.Hint] = []
        if self.token.kind == "hint" and self.token.text == "/*+":
            self.advance()
            while not (self.token.kind == "hint" and self.token.text == "*/"):
                found.append(self._hint())
                self.take_op(",")
            self.advance()
        return tuple(found)

    def _hint(self) -> s.Hint:
        at, name = self.at, self.name(any_word=True).upper()
        words: list[str] = []
        options: list[tuple[str, str]] = []
        if self.take_op("("):
            while not self.is_op(")"):
                token = self.token
                if token.kind not in ("string", "word", "quoted", "number"):
                    self.fail("an option of the hint")
                self.advance()
                if self.take_op("="):
                    options.append((token.text, self.advance().text))
                else:
                    words.append(token.text)
                if not self.take_op(","):
                    break
            self.expect_op(")")
        return s.Hint(at, name, tuple(words), tuple(options))

    # ---------------------------------------------------------------------------------------------- MATCH_RECOGNIZE

    def _match(self, source: s.Source) -> s.Source:
        at = self.advance().start
        self.expect_op("(")
        partition: tuple[s.Expr, ...] = ()
        order: tuple[s.OrderItem, ...] = ()
        if self.take("PARTITION", "BY"):
            partition = self.many(self.expression)
        if self.is_word("ORDER"):
            order = self._order_by()
        measures = self.many(self._measure) if self.take("MEASURES") else ()
        all_rows = False
        if self.take("ONE", "ROW", "PER", "MATCH"):
            pass
        elif self.take("ALL", "ROWS", "PER", "MATCH"):
            all_rows = True
        skip: tuple[str, str | None] = ("PAST LAST ROW", None)
        if self.take("AFTER", "MATCH", "SKIP"):
            skip = self._skip()
        self.expect("PATTERN")
        self.expect_op("(")
        pattern = self._pattern()
        self.expect_op(")")
        within = self.expression() if self.take("WITHIN") else None
        subsets: tuple[tuple[str, tuple[str, ...]], ...] = ()
        if self.take("SUBSET"):
            subsets = self.many(self._subset)
        define = self.many(self._definition) if self.take("DEFINE") else ()
        self.expect_op(")")
        alias, columns = self._named_columns()
        return s.Matched(
            at, source, partition, order, measures, all_rows, skip, pattern, within, define, subsets, alias, columns
        )

    def _measure(self) -> tuple[s.Expr, str]:
        expr = self.expression()
        self.expect("AS")
        return expr, self.name(any_word=True)

    def _subset(self) -> tuple[str, tuple[str, ...]]:
        name = self.name()
        self.expect_op("=")
        return name, self.wrapped(self.name)

    def _definition(self) -> tuple[str, s.Expr]:
        name = self.name()
        self.expect("AS")
        return name, self.expression()

    def _skip(self) -> tuple[str, str | None]:
        if self.take("PAST", "LAST", "ROW"):
            return "PAST LAST ROW", None
        self.expect("TO")
        if self.take("NEXT", "ROW"):
            return "TO NEXT ROW", None
        if self.take("FIRST"):
            return "TO FIRST", self.name()
        self.take("LAST")
        return "TO LAST", self.name()

    def _pattern(self) -> s.PatternNode:
        at = self.at
        choices = [self._pattern_sequence()]
        while self.take_op("|"):
            choices.append(self._pattern_sequence())
        return choices[0] if len(choices) == 1 else s.PatternNode(at, "choice", parts=tuple(choices))

    def _pattern_sequence(self) -> s.PatternNode:
        at = self.at
        parts: list[s.PatternNode] = []
        while not self.is_op(")", "|") and self.token.kind != "end":
            parts.append(self._quantified())
        if not parts:
            self.fail("a pattern variable")
        return parts[0] if len(parts) == 1 else s.PatternNode(at, "sequence", parts=tuple(parts))

    def _quantified(self) -> s.PatternNode:
        at = self.at
        if self.take_op("("):
            inner = self._pattern()
            self.expect_op(")")
        else:
            inner = s.PatternNode(at, "variable", self.name())
        least: int = 1
        most: int | None = None
        if self.take_op("*"):
            least = 0
        elif self.take_op("+"):
            pass
        elif self.take_op("?"):
            least, most = 0, 1
        elif self.take_op("{"):
            if self.take_op(","):
                least, most = 0, self.integer()
            else:
                least = self.integer()
                most = least
                if self.take_op(","):
                    most = self.integer() if self.token.kind == "number" else None
            self.expect_op("}")
        else:
            return inner
        greedy = not self.take_op("?")
        return s.PatternNode(at, "quantified", parts=(inner,), least=least, most=most, greedy=greedy)


def _as_query(body: s.Body | s.Query) -> s.Query:
    return body if isinstance(body, s.Query) else s.Query(body.at, body)
