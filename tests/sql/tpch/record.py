"""Records what DuckDB answers to TPC-H's queries: PYTHON_WITH_DUCKDB tests/sql/tpch/record.py [scale]

The tables are made by tpchgen-cli, which must be beside that Python or on the path."""

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
        answers = {}
        for name, text in QUERIES.items():
            relation = connection.sql(text)
            rows = [[None if cell is None else str(cell) for cell in row] for row in relation.fetchall()]
            answers[name] = {"types": [str(kind) for kind in relation.types], "rows": rows}
    lines = [f"{json.dumps(name)}: {json.dumps(answer)}" for name, answer in answers.items()]
    (GOLDEN / f"answers-{scale}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
