"""Records the results of random queries in DuckDB: PYTHON_WITH_DUCKDB tests/sql/fuzz/record.py [how many]"""

import json
import sys
from pathlib import Path

import duckdb

sys.path.append(str(Path(__file__).parent))

from fuzz_queries import case
from fuzz_runs import RECORDED, compute_digest, run_duckdb


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    connection = duckdb.connect()
    digests = {
        mode: [compute_digest(run_duckdb(case(seed, stream=mode == "stream"), connection)) for seed in range(seeds)]
        for mode, seeds in (("stream", count), ("batch", count // 10))
    }
    RECORDED.write_text(json.dumps(digests, indent=0) + "\n")


if __name__ == "__main__":
    main()
