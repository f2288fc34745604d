"""Record golden output of the programs in `programs/` from the real PyFlink.

Promises: one file `NAME.txt` below tests/golden/programs per program, a header (`# name: value`) and one line of text
per element; two recordings give the same bytes.
Does not know: millstream, or how its tests read the files beyond `read_golden`, `arranged` and `text_of`."""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
import traceback
import types
import venv
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PYFLINK = "apache-flink==2.3.0"
HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"
GOLDEN = HERE.parent / "golden" / "programs"
AS_BATCH = GOLDEN / "batch"
PLANS = ("plan_chain", "plan_union")
BATCH = 12


@dataclass(frozen=True, slots=True)
class Golden:
    """What was recorded of one program: how its lines compare, and the lines.

    `order` is `all` (the whole sequence counts), `key` (the sequence of each key counts) or `none` (a multiset);
    another run agrees when `arranged(golden.order, its lines) == golden.lines`.
    `watermarks` is `final` (only the one at the end of input), `any` (results do not depend on when they are sent)
    or `each` (one after every element)."""

    program: str
    law: str
    order: str
    watermarks: str
    lines: tuple[str, ...]


def text_of(element: Any) -> str:
    """The one line an element is recorded as."""
    return str(element).replace("\\", "\\\\").replace("\n", "\\n")


def key_of(line: str) -> str:
    """The text of the first field of a recorded line: of a tuple, a Row, or a string of words."""
    body = line.removeprefix("<")
    for opening in ("Row(", "("):
        if body.startswith(opening):
            return body[len(opening) :].split(", ")[0].rstrip(",)>")
    return body.split(" ")[0]


def arranged(order: str, lines: Iterable[str]) -> tuple[str, ...]:
    """Lines brought into the one sequence that stands for all that are equal under `order`; golden files hold it."""
    if order == "all":
        return tuple(lines)
    return tuple(sorted(lines, key=key_of if order == "key" else None))


def read_golden(name: str, folder: Path = GOLDEN) -> Golden:
    """The recorded output of the program `name`."""
    header: dict[str, str] = {}
    lines = (folder / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    while lines and lines[0].startswith("# "):
        field, _, value = lines.pop(0)[2:].partition(": ")
        header[field] = value
    return Golden(header["program"], header["law"], header["order"], header["watermarks"], tuple(lines))


def program_names() -> list[str]:
    """Every program that has golden output, sorted."""
    return sorted(path.stem for path in PROGRAMS.glob("*.py"))


def load(name: str, rewrite: Callable[[str], str] = lambda source: source) -> types.ModuleType:
    """A program as a module that cannot be imported by name, so its functions travel by value."""
    path = PROGRAMS / f"{name}.py"
    module = types.ModuleType(f"compat_program_{name}")
    exec(compile(rewrite(path.read_text(encoding="utf-8")), str(path), "exec"), module.__dict__)
    return module


def constants_of(name: str) -> dict[str, str]:
    """What a program says of itself: ORDER, WATERMARKS, MODE, COLLECT, and its docstring as `law`."""
    source = ast.parse((PROGRAMS / f"{name}.py").read_text(encoding="utf-8"))
    constants = {
        target.id: str(node.value.value)
        for node in source.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return {
        "MODE": "process",
        "COLLECT": "collect",
        **constants,
        "law": (ast.get_docstring(source) or "").splitlines()[0],
    }


def write_golden(name: str, elements: Iterable[Any], out: Path = GOLDEN, how: str | None = None) -> None:
    """Write `NAME.txt` from the elements, arranged by the program's ORDER."""
    constants = constants_of(name)
    header = {
        "program": name,
        "law": constants["law"],
        "order": constants["ORDER"],
        "watermarks": constants["WATERMARKS"],
        "recorded with": f"{PYFLINK}, {how or constants['MODE'] + ' mode'}",
    }
    lines = arranged(constants["ORDER"], map(text_of, elements))
    text = [f"# {field}: {value}" for field, value in header.items()] + list(lines)
    out.mkdir(exist_ok=True)
    (out / f"{name}.txt").write_text("\n".join(text) + "\n", encoding="utf-8")


def _record(names: list[str], mode: str | None, out: Path, *, batch: bool = False) -> list[str]:
    """Run programs with the PyFlink of this interpreter; the names of those that failed."""
    from pyflink.common import Configuration  # type: ignore[import-not-found]
    from pyflink.datastream import RuntimeExecutionMode, StreamExecutionEnvironment  # type: ignore[import-not-found]

    failed = []
    how = "thread mode, BATCH" if batch else None
    for name in names:
        configuration = Configuration()
        configuration.set_string("python.execution-mode", mode or constants_of(name)["MODE"])
        configuration.set_string("heartbeat.timeout", "600000")  # programs with hundreds of branches start slowly
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        env.set_parallelism(1)
        env.get_config().set_auto_watermark_interval(0)
        try:
            stream = load(name).define(env)
            if batch:
                env.set_runtime_mode(RuntimeExecutionMode.BATCH)
            if isinstance(stream, list):
                write_golden(name, stream, out, how)
            elif constants_of(name)["COLLECT"] == "file":
                write_golden(name, _through_file(env, stream), out, how)
            else:
                with stream.execute_and_collect() as elements:
                    write_golden(name, elements, out, how)
            print(f"recorded {name}", flush=True)
        except Exception:
            traceback.print_exc()
            failed.append(name)
    for name in [] if batch else [plan for plan in PLANS if plan in names]:
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(2)
        load(name).define(env).print()
        plan = _renumbered(json.loads(env.get_execution_plan()))
        (out / f"{name}.json").write_text(json.dumps(plan, indent=2) + "\n", encoding="utf-8")
    return failed


def _through_file(env: Any, stream: Any) -> list[str]:
    """The elements by way of a file sink: execute_and_collect gives custom partitioners no number of partitions."""
    from pyflink.common import Encoder, Types
    from pyflink.datastream.connectors.file_system import FileSink  # type: ignore[import-not-found]

    with tempfile.TemporaryDirectory() as folder:
        sink = FileSink.for_row_format(folder, Encoder.simple_string_encoder()).build()
        stream.map(str, output_type=Types.STRING()).sink_to(sink)
        env.execute()
        parts = [path for path in Path(folder).rglob("*") if path.is_file()]
        return [line for part in parts for line in part.read_text(encoding="utf-8").splitlines()]


def _renumbered(plan: dict[str, Any]) -> dict[str, Any]:
    """The plan with its process-wide node ids replaced by their rank."""
    ranks = {old: rank for rank, old in enumerate(sorted(node["id"] for node in plan["nodes"]), start=1)}
    for node in plan["nodes"]:
        for entry in [node, *node.get("predecessors", [])]:
            entry["id"] = ranks[entry["id"]]
    return plan


def _environment(python: str | None) -> str:
    if python is not None:
        return python
    home = Path(tempfile.gettempdir()) / "pyflink-for-golden"
    interpreter = home / "bin" / "python"
    if not interpreter.exists():
        venv.create(home, with_pip=True)
        subprocess.run([str(interpreter), "-m", "pip", "install", "--quiet", PYFLINK], check=True)
    return str(interpreter)


def main() -> int:
    """Command line: record all programs, or those named."""
    parser = argparse.ArgumentParser(description="Record golden output from the real PyFlink.")
    parser.add_argument("names", nargs="*", help="programs to record; all when none is named")
    parser.add_argument("--python", help=f"an interpreter that has {PYFLINK}; without it one is set up")
    parser.add_argument(
        "--mode", choices=("process", "thread"), help="python.execution-mode instead of the program's own"
    )
    parser.add_argument("--out", type=Path, help="where to write; the golden folder if not given")
    parser.add_argument(
        "--batch", action="store_true", help="run streaming programs in BATCH mode, into tests/golden/programs/batch"
    )
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    recorded = sorted(path.stem for path in AS_BATCH.glob("*.txt")) if arguments.batch else program_names()
    names = arguments.names or recorded
    out = arguments.out or (AS_BATCH if arguments.batch else GOLDEN)
    mode = "thread" if arguments.batch else arguments.mode  # in process mode PyFlink's timers hang in BATCH
    if arguments.worker:
        failed = _record(names, mode, out, batch=arguments.batch)
        print(f"failed: {' '.join(failed) or 'none'}", flush=True)
        return 1 if failed else 0
    python = _environment(arguments.python)
    environ = {**os.environ, "PATH": f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"}
    worker = [python, __file__, "--worker", "--out", str(out), *(["--batch"] if arguments.batch else [])]
    worker += ["--mode", arguments.mode] if arguments.mode else []
    codes = [
        subprocess.run([*worker, *names[start : start + BATCH]], env=environ, check=False).returncode
        for start in range(0, len(names), BATCH)
    ]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
