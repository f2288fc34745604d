"""Records which types the real Flink converts in an INSERT.

PYTHON_WITH_APACHE_FLINK tests/sql/record_assignments.py"""

import json

from assignments import GOLDEN, accepted
from pyflink.table import EnvironmentSettings, TableEnvironment

if __name__ == "__main__":
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    table = accepted(environment, lambda problem: "Incompatible types for sink column" in str(problem))
    GOLDEN.write_text(json.dumps(table, indent=1) + "\n")
