"""Records what DuckDB answers to random queries: PYTHON_WITH_DUCKDB tests/sql/fuzz/record.py [how many]"""

import json
import sys
from pathlib import Path

import duckdb

sys.path.append(str(Path(__file__).parent))

from fuzz_queries import case
from fuzz_runs import ANSWERS, by_duckdb, digest


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    connection = duckdb.connect()
    answers = {
        form: [digest(by_duckdb(case(seed, stream=form == "stream"), connection)) for seed in range(seeds)]
        for form, seeds in (("stream", count), ("batch", count // 10))
    }
    ANSWERS.write_text(json.dumps(answers, indent=0) + "\n")


if __name__ == "__main__":
    main()
