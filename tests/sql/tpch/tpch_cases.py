"""TPC-H: its tables made by tpchgen-cli, its queries, and the answers that DuckDB gave."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from millstream.table import TableEnvironment

HERE = Path(__file__).parent
GOLDEN = HERE.parents[1] / "golden" / "tpch"
SCALE = "0.05"
QUERIES = {path.stem: path.read_text() for path in sorted((HERE / "queries").glob("q*.sql"))}
_TABLES = {
    "nation": "n_nationkey BIGINT, n_name STRING, n_regionkey BIGINT, n_comment STRING",
    "region": "r_regionkey BIGINT, r_name STRING, r_comment STRING",
    "part": "p_partkey BIGINT, p_name STRING, p_mfgr STRING, p_brand STRING, p_type STRING, p_size INT, "
    "p_container STRING, p_retailprice DECIMAL(15, 2), p_comment STRING",
    "supplier": "s_suppkey BIGINT, s_name STRING, s_address STRING, s_nationkey BIGINT, s_phone STRING, "
    "s_acctbal DECIMAL(15, 2), s_comment STRING",
    "partsupp": "ps_partkey BIGINT, ps_suppkey BIGINT, ps_availqty INT, ps_supplycost DECIMAL(15, 2), "
    "ps_comment STRING",
    "customer": "c_custkey BIGINT, c_name STRING, c_address STRING, c_nationkey BIGINT, c_phone STRING, "
    "c_acctbal DECIMAL(15, 2), c_mktsegment STRING, c_comment STRING",
    "orders": "o_orderkey BIGINT, o_custkey BIGINT, o_orderstatus STRING, o_totalprice DECIMAL(15, 2), "
    "o_orderdate DATE, o_orderpriority STRING, o_clerk STRING, o_shippriority INT, o_comment STRING",
    "lineitem": "l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber INT, "
    "l_quantity DECIMAL(15, 2), l_extendedprice DECIMAL(15, 2), l_discount DECIMAL(15, 2), l_tax DECIMAL(15, 2), "
    "l_returnflag STRING, l_linestatus STRING, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, "
    "l_shipinstruct STRING, l_shipmode STRING, l_comment STRING",
}


def generator() -> str | None:
    """The program that makes the tables."""
    beside = Path(sys.executable).with_name("tpchgen-cli")
    return str(beside) if beside.exists() else shutil.which("tpchgen-cli")


def make_tables(folder: Path, scale: str = SCALE) -> None:
    program = generator()
    assert program is not None, "pip install tpchgen-cli"
    subprocess.run([program, "parquet", "-s", scale, "--output-dir", str(folder)], check=True)


def create_tables(env: TableEnvironment, folder: Path) -> None:
    for name, columns in _TABLES.items():
        path, declared = folder / f"{name}.parquet", columns.replace(", ", " NOT NULL, ").replace("(15 NOT NULL", "(15")
        env.execute_sql(
            f"CREATE TABLE {name} ({declared} NOT NULL) "
            f"WITH ('connector' = 'filesystem', 'format' = 'parquet', 'path' = '{path}')"
        )


def golden(scale: str = SCALE) -> dict[str, Any]:
    return json.loads((GOLDEN / f"answers-{scale}.json").read_text())


def same(found: Sequence[Sequence[Any]], wanted: Sequence[Sequence[Any]], kinds: Sequence[str]) -> bool:
    """Whether answers are equal: exactly, but for what DuckDB computes in floating point."""
    return len(found) == len(wanted) and all(
        _equal(have, want, kind)
        for one, other in zip(found, wanted, strict=True)
        for have, want, kind in zip(one, other, kinds, strict=True)
    )


def _equal(have: Any, want: Any, kind: str) -> bool:
    if have is None or want is None:
        return have is want
    if kind == "DOUBLE":
        return abs(float(have) - float(want)) <= 1e-6 * max(1.0, abs(float(want)))
    if isinstance(have, Decimal):
        return have == Decimal(want)
    return (have.isoformat() if isinstance(have, date) else str(have)) == want
