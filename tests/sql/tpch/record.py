"""Records the results of TPC-H's queries in DuckDB: PYTHON_WITH_DUCKDB tests/sql/tpch/record.py [scale]

tpchgen-cli generates the tables; it must be installed with that Python or be on the path."""

import json
import sys
import tempfile
from pathlib import Path

import duckdb

HERE = Path(__file__).parent
sys.path.append(str(HERE))

from tpch_cases import GOLDEN, QUERIES, SCALE, make_tables  # noqa: E402


def main() -> None:
    scale = sys.argv[1] if len(sys.argv) > 1 else SCALE
    with tempfile.TemporaryDirectory() as folder:
        make_tables(Path(folder), scale)
        connection = duckdb.connect()
        for path in Path(folder).glob("*.parquet"):
            connection.execute(f"CREATE VIEW {path.stem} AS SELECT * FROM '{path}'")
        results = {}
        for name, text in QUERIES.items():
            relation = connection.sql(text)
            rows = [[None if cell is None else str(cell) for cell in row] for row in relation.fetchall()]
            results[name] = {"types": [str(data_type) for data_type in relation.types], "rows": rows}
    lines = [f"{json.dumps(name)}: {json.dumps(result)}" for name, result in results.items()]
    (GOLDEN / f"answers-{scale}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
