"""A session in which DDL statements run without a table environment."""

from collections.abc import Callable
from typing import Any

import pytest

from millstream.sql.catalog.catalog import Catalogs
from millstream.sql.ddl import DdlExecutor
from millstream.sql.functions.user_functions import UserFunction
from millstream.sql.logical.bind.expressions import Session
from millstream.sql.syntax import parse_statement
from millstream.table import DataTypes
from millstream.table.udf import to_user_function, udf

TABLE = (
    "CREATE TABLE t (id INT, name STRING, ts TIMESTAMP(3), twice AS id * 2, WATERMARK FOR ts AS ts, "
    "PRIMARY KEY (id) NOT ENFORCED) PARTITIONED BY (name) WITH ('connector' = 'print')"
)


def wrap(name: str, function: Any) -> UserFunction:
    """Return a user-defined function of one DOUBLE for any Python function."""
    return to_user_function(name, udf(function, [DataTypes.DOUBLE()], DataTypes.DOUBLE()))


@pytest.fixture
def catalogs() -> Catalogs:
    return Catalogs()


@pytest.fixture
def run(catalogs: Catalogs) -> Callable[[str], tuple[tuple[Any, ...], ...]]:
    """Execute a statement and return the rows of its result. The table `t` and the view `v` exist."""

    def execute(text: str) -> tuple[tuple[Any, ...], ...]:
        result = DdlExecutor(Session(catalogs), wrap).execute(parse_statement(text), text)
        assert result is not None
        return result.rows

    execute(TABLE)
    execute("CREATE VIEW v AS SELECT id AS a FROM t")
    return execute
