"""Records the files that exist after INSERT OVERWRITE in the real Flink.

    PYTHON_WITH_APACHE_FLINK tests/sql/record_overwrites.py

Each case of tests/golden/sql/ends/overwrites.yaml
has statements about the tables that `overwrites.TABLES` makes. The recorder
writes the files and their lines beside them, or why a statement was refused."""

import tempfile
from pathlib import Path

import yaml
from overwrites import GOLDEN, create_filled_environment, read_files
from pyflink.table import EnvironmentSettings, TableEnvironment

from record import Dumper, _cause

if __name__ == "__main__":
    content = yaml.safe_load(GOLDEN.read_text())
    for case in content["cases"]:
        print(case["name"], flush=True)
        for key in ("files", "refused"):
            case.pop(key, None)
        with tempfile.TemporaryDirectory() as directory:
            folder = Path(directory)
            env = create_filled_environment(TableEnvironment, EnvironmentSettings, folder, case.get("mode", "batch"))
            try:
                for statement in case["statements"]:
                    env.execute_sql(statement).wait()
                case["files"] = read_files(folder)
            except Exception as problem:
                case["refused"] = _cause(problem)
    GOLDEN.write_text(yaml.dump(content, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=220))
