"""Planning of lookup joins: the columns that are looked up, and LOOKUP hints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest
from planning_inputs import PROCTIME, is_greater, table

from millstream.sql.catalog.catalog import ColumnDefinition, TableDefinition
from millstream.sql.connector.lookup import Key, Lookup, LookupRows, TableLookup
from millstream.sql.connector.table_connector import TableConnector, TableContext
from millstream.sql.connectors import registry
from millstream.sql.errors import SqlValidationError
from millstream.sql.expressions.nodes import Apply, Expression, Lit, Ref
from millstream.sql.logical import nodes as l
from millstream.sql.operators.join.lookup_join import LookupJoinSpec, Retry
from millstream.sql.physical.nodes import FORWARD, LookupOrigin, Operation, distribute_by_hash
from millstream.sql.physical.planning.lookup_joins import plan_lookup_join
from millstream.sql.types import data_types as t
from millstream.sql_options import ASYNC_LOOKUP_CAPACITY, ASYNC_LOOKUP_TIMEOUT

ORDERS = table(id=t.INT, customer=t.STRING, p=PROCTIME)
LEFT = Operation("Table", "", ORDERS.schema, upsert_keys=frozenset(((0,),)))
COLUMNS = (ColumnDefinition("name", t.STRING), ColumnDefinition("city", t.STRING), ColumnDefinition("age", t.INT))
CUSTOMERS = TableDefinition(COLUMNS, {"connector": "lookup-test"}, primary_key=("name",))
SCAN = l.Scan(CUSTOMERS.schema, CUSTOMERS, ("customers",))
NAME, CITY, AGE = SCAN.refs()


@dataclass(frozen=True)
class AllColumns(Lookup):
    """A lookup that cannot be projected."""

    def find(self, keys: Sequence[Key]) -> Mapping[Key, LookupRows]:
        raise AssertionError("plans are not run")


@dataclass(frozen=True)
class SomeColumns(AllColumns):
    """A lookup of some columns."""

    columns: tuple[int, ...] = (0, 1, 2)

    def project(self, columns: tuple[int, ...]) -> Lookup:
        return SomeColumns(columns)


def connector(lookup: Lookup) -> TableConnector:
    def look_up(context: TableContext, _columns: tuple[str, ...]) -> TableLookup:
        return TableLookup(lookup, context.schema)

    return TableConnector("lookup-test", lookup=look_up)


@pytest.fixture(autouse=True)
def lookup_connector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._CONNECTORS, "lookup-test", connector(SomeColumns()))


def plan(
    right: l.Plan = SCAN,
    keys: tuple[int, ...] = (0,),
    options: Mapping[str, str] | None = None,
    **hint: str,
) -> Operation | None:
    schema = l.join_schemas(ORDERS.schema, right.schema, "inner")
    hints = tuple((name.replace("_", "-"), value) for name, value in hint.items())
    node = l.TemporalJoin(schema, ORDERS, right, "inner", 2, (1,) * len(keys), keys, None, hints)

    def context(
        name: tuple[str, ...], definition: TableDefinition, _hints: tuple[tuple[str, str], ...]
    ) -> TableContext:
        return TableContext(name, definition, definition.options)

    return plan_lookup_join(node, LEFT, context, (options or {}).get, "UTC")


def spec_of(operation: Operation | None) -> LookupJoinSpec:
    assert operation is not None
    spec: LookupJoinSpec = operation.spec
    return spec


def test_a_table_is_looked_up_by_the_compared_columns() -> None:
    operation = plan()
    assert operation is not None
    assert operation.detail == "table=[customers], joinType=[InnerJoin], lookup=[name=customer]"
    assert (operation.inputs, operation.distributions) == ((LEFT,), (FORWARD,))
    assert spec_of(operation).exprs is None, "rows are used as they are looked up"


def test_a_lookup_by_the_primary_key_keeps_the_upsert_keys() -> None:
    operations = plan(), plan(keys=(1,))
    assert [operation.upsert_keys for operation in operations if operation is not None] == [{(0,)}, frozenset()]


def test_only_columns_that_are_used_are_looked_up() -> None:
    adult = l.Filter(SCAN.schema, SCAN, is_greater(AGE, Lit(t.INT, 17)))
    operation = plan(l.project(adult, [NAME], ["name"]))
    spec = spec_of(operation)
    assert spec.lookup.lookup == SomeColumns((0, 2))
    assert spec.condition == is_greater(Ref(AGE.type, 1), Lit(t.INT, 17))
    assert operation is not None
    assert isinstance(operation.origin, LookupOrigin)
    assert operation.origin.kept == (0, 2)


def test_a_lookup_that_cannot_be_projected_reads_all_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._CONNECTORS, "lookup-test", connector(AllColumns()))
    spec = spec_of(plan(l.project(SCAN, [NAME], ["name"])))
    assert (spec.lookup.schema, spec.exprs) == (CUSTOMERS.schema, (NAME,))


@pytest.mark.parametrize(
    "right",
    [
        l.project(SCAN, [Apply(t.STRING, "UPPER", (NAME,)), CITY], ["name", "city"]),
        l.Values(SCAN.schema, ()),
    ],
    ids=["a computed key", "no table"],
)
def test_a_plan_that_cannot_be_looked_up_is_not_a_lookup_join(right: l.Plan) -> None:
    assert plan(right) is None


def test_a_connector_without_lookup_is_not_a_lookup_join(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._CONNECTORS, "lookup-test", TableConnector("lookup-test"))
    assert plan() is None


def test_a_column_is_compared_once() -> None:
    with pytest.raises(SqlValidationError, match="compare each column of the table only once"):
        plan(keys=(0, 0))


def test_hints_override_options_of_the_session() -> None:
    options = {ASYNC_LOOKUP_CAPACITY.key: "7", ASYNC_LOOKUP_TIMEOUT.key: "5 s"}
    spec = spec_of(plan(options=options))
    assert (spec.capacity, spec.timeout, spec.lookup.asynchronous, spec.retry) == (7, 5000, False, None)
    spec = spec_of(plan(options=options, capacity="9", timeout="2 s", **{"async": "true"}))
    assert (spec.capacity, spec.timeout, spec.lookup.asynchronous) == (9, 2000, True)


def test_shuffle_partitions_by_the_lookup_keys() -> None:
    operation = plan(shuffle="true")
    assert operation is not None
    assert operation.distributions == (distribute_by_hash((1,)),)


RETRY = {"retry_predicate": "lookup_miss", "retry_strategy": "fixed_delay", "fixed_delay": "3 s", "max_attempts": "4"}


def test_retries() -> None:
    operation = plan(**RETRY)
    assert spec_of(operation).retry == Retry(3000, 4)
    assert operation is not None
    assert operation.detail.endswith("retry=[lookup_miss, fixed_delay, 3000ms, 4]")


@pytest.mark.parametrize(
    ("hint", "problem"),
    [
        ({"capacty": "3"}, "no option 'capacty'"),
        ({"async": "maybe"}, "'async' of the LOOKUP hint must be true or false"),
        ({"capacity": "0"}, "'capacity' of the LOOKUP hint must be a number above 0"),
        ({"max_attempts": "3"}, "retry-predicate, retry-strategy, fixed-delay is missing"),
        ({**RETRY, "retry_strategy": "never"}, "must be fixed_delay"),
    ],
)
def test_invalid_hints_are_refused(hint: dict[str, str], problem: str) -> None:
    with pytest.raises(SqlValidationError, match=problem):
        plan(**hint)


def test_a_condition_is_shifted_with_the_columns_it_reads() -> None:
    condition: Expression = is_greater(AGE, Lit(t.INT, 17))
    inner = l.Filter(SCAN.schema, SCAN, condition)
    projected = l.project(inner, [CITY, NAME], ["city", "name"])
    outer = l.Filter(projected.schema, projected, is_greater(Ref(t.STRING, 0), Lit(t.STRING, "M")))
    spec = spec_of(plan(outer, keys=(1,)))
    assert str(spec.condition) == "AND(>($2, 17), >($1, 'M'))"
