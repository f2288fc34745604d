"""The tables that the cases of tests/golden/sql/ends/overwrites.yaml replace, in Flink and in millstream."""

from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[1] / "golden" / "sql" / "ends" / "overwrites.yaml"
TABLES = (
    "CREATE TABLE n (v INT) WITH ('connector'='filesystem', 'path'='{}/n', 'format'='csv')",
    "CREATE TABLE p (v INT, dt STRING, hr INT) PARTITIONED BY (dt, hr) "
    "WITH ('connector'='filesystem', 'path'='{}/p', 'format'='csv')",
    "CREATE TABLE b (v INT) WITH ('connector'='blackhole')",
)


def create_filled_environment(environments: Any, settings: Any, folder: Path, mode: str) -> Any:
    """Return an environment of one of the systems, with tables that have rows, a hidden file and a directory."""
    before = {"n/part-0": "1\n2\n", "n/sub/part": "3\n", "n/_hidden": "x\n"}
    before |= {"p/dt=a/hr=1/part-0": "1\n", "p/dt=a/hr=2/part-0": "2\n", "p/dt=b/hr=1/part-0": "3\n"}
    for name, text in before.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    env = environments.create(settings.in_batch_mode() if mode == "batch" else settings.in_streaming_mode())
    env.get_config().set("parallelism.default", "1")
    for table in TABLES:
        env.execute_sql(table.format(folder))
    return env


def read_files(folder: Path) -> dict[str, list[str]]:
    """Return the lines of the files in each directory, without checksum files; hidden files by name."""
    lines_by_directory: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix != ".crc":
            key = path if path.name.startswith("_") else path.parent
            lines_by_directory.setdefault(str(key.relative_to(folder)), []).extend(path.read_text().split())
    return {name: sorted(lines) for name, lines in sorted(lines_by_directory.items())}
