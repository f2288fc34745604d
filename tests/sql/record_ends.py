"""Records how the real Flink treats the ends of queries: changelogs of sources, and the rows that sinks get.

    PYTHON_WITH_APACHE_FLINK tests/sql/record_ends.py

Each case of tests/golden/sql/ends/changelogs.yaml
has `tables` (columns, perhaps a primary key, and lines of debezium-json), a
`sink` (columns, perhaps a primary key, and options; print by default) and an INSERT. The recorder runs it at
parallelism 1 and writes the lines that were printed beside it, or why it was refused."""

import tempfile
from pathlib import Path
from typing import Any

import yaml
from pyflink.java_gateway import get_gateway
from pyflink.table import EnvironmentSettings, TableEnvironment

from record import Dumper, _find_cause

GOLDEN = Path(__file__).parents[1] / "golden" / "sql" / "ends" / "changelogs.yaml"


def record_case(case: dict[str, Any], folder: Path) -> dict[str, Any]:
    env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    env.get_config().set("parallelism.default", "1")
    env.get_config().set("table.local-time-zone", "UTC")
    for key, value in case.get("options", {}).items():
        env.get_config().set(key, value)
    for name, table in case["tables"].items():
        path = folder / f"{name}.json"
        path.write_text("".join(f"{line}\n" for line in table["lines"]))
        form = table.get("format", "debezium-json")
        env.execute_sql(
            f"CREATE TABLE {name} ({table['columns']}) WITH ('connector'='filesystem', 'path'='{path}', "
            f"'format'='{form}')"
        )
    with_options = case.get("sink_options", {"connector": "print"})
    options = ", ".join(f"'{k}'='{str(v).replace('$FOLDER', str(folder))}'" for k, v in with_options.items())
    env.execute_sql(f"CREATE TABLE sink ({case['sink']}) WITH ({options})")
    jvm = get_gateway().jvm
    stream = jvm.java.io.ByteArrayOutputStream()
    before = jvm.System.out
    jvm.System.setOut(jvm.java.io.PrintStream(stream))
    try:
        env.execute_sql(case["insert"]).wait()
    except Exception as problem:
        return {"refused": _find_cause(problem)}
    finally:
        jvm.System.setOut(before)
    text = str(stream.toString()).strip()
    return {"printed": text.split("\n") if text else []}


if __name__ == "__main__":
    content = yaml.safe_load(GOLDEN.read_text())
    for each in content["cases"]:
        print(each["name"], flush=True)
        for key in ("printed", "refused"):
            each.pop(key, None)
        with tempfile.TemporaryDirectory() as directory:
            each.update(record_case(each, Path(directory)))
    GOLDEN.write_text(yaml.dump(content, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=220))
