"""The tables that the cases of tests/golden/sql/ends/overwrites.yaml replace, in Flink as here."""

from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[1] / "golden" / "sql" / "ends" / "overwrites.yaml"
TABLES = (
    "CREATE TABLE n (v INT) WITH ('connector'='filesystem', 'path'='{}/n', 'format'='csv')",
    "CREATE TABLE p (v INT, dt STRING, hr INT) PARTITIONED BY (dt, hr) "
    "WITH ('connector'='filesystem', 'path'='{}/p', 'format'='csv')",
    "CREATE TABLE b (v INT) WITH ('connector'='blackhole')",
)


def filled(environments: Any, settings: Any, folder: Path, mode: str) -> Any:
    """An environment of either system, with tables that have rows, a hidden file and a folder."""
    before = {"n/part-0": "1\n2\n", "n/sub/part": "3\n", "n/_hidden": "x\n"}
    before |= {"p/dt=a/hr=1/part-0": "1\n", "p/dt=a/hr=2/part-0": "2\n", "p/dt=b/hr=1/part-0": "3\n"}
    for name, text in before.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    env = environments.create(settings.in_batch_mode() if mode == "batch" else settings.in_streaming_mode())
    env.get_config().set("parallelism.default", "1")
    for each in TABLES:
        env.execute_sql(each.format(folder))
    return env


def files_below(folder: Path) -> dict[str, list[str]]:
    """The lines of the files in each folder that are no checksums; hidden ones by name."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix != ".crc":
            place = path if path.name.startswith("_") else path.parent
            found.setdefault(str(place.relative_to(folder)), []).extend(path.read_text().split())
    return {name: sorted(lines) for name, lines in sorted(found.items())}
