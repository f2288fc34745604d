"""Clocks, random numbers and unique ids are arguments; modules do not read them themselves."""

import ast

import pytest
from sources import allowed, dotted, imported, trees

CLOCKS = {"time.time", "time.time_ns", "time.localtime", "time.gmtime", "os.urandom", "uuid.uuid1", "uuid.uuid4"}
TODAY = {"now", "utcnow", "today"}
CHANCE = ("random", "secrets")
IMPURE = {"time", "random", "threading", "asyncio", "socket", "subprocess", "os", "pathlib", "io", "tempfile", "shutil"}


def clocks(tree: ast.Module) -> list[str]:
    """Every use of a clock, of random numbers or of unique ids in a file, with its line."""
    found = []
    for module, line in imported(tree):
        if module in CLOCKS or module.split(".")[0] in CHANCE:
            found.append(f"line {line}: import of {module}")
    for node in ast.walk(tree):
        name = dotted(node) if isinstance(node, ast.Attribute) else ""
        last = name.rpartition(".")[2]
        if name in CLOCKS or (last in TODAY and name.split(".")[-2] in ("datetime", "date")):
            found.append(f"line {node.lineno}: {name}")
        if isinstance(node, ast.Call) and ".random." in (call := dotted(node.func)):
            seeded = call.endswith(".default_rng") and node.args
            if not seeded:
                found.append(f"line {node.lineno}: {call}")
    return found


def is_allowed(name: str) -> bool:
    return name in allowed("clocks") or name.startswith("engine/spark/")


@pytest.mark.parametrize(
    "source",
    [
        "import time\nat = time.time()",
        "from time import time",
        "from datetime import datetime\nat = datetime.now()",
        "import datetime\nat = datetime.datetime.now(datetime.UTC)",
        "import random",
        "from uuid import uuid4",
        "import numpy as np\nrng = np.random.default_rng()",
    ],
)
def test_the_check_detects_a_clock(source):
    assert clocks(ast.parse(source))


@pytest.mark.parametrize("source", ["from uuid import UUID", "import time\nbusy = time.perf_counter()"])
def test_the_check_accepts_values_and_durations(source):
    assert not clocks(ast.parse(source))


def test_no_clock_outside_the_composition_root():
    found = {name: lines for name, tree in trees().items() if not is_allowed(name) and (lines := clocks(tree))}
    assert not found, f"time, chance or identity that nobody passed in: {found}"


def test_machines_are_pure():
    machines = {name: tree for name, tree in trees().items() if name.startswith("cluster/") and _is_machine(name)}
    impure = {
        name: sorted({module for module, _ in imported(tree) if _is_impure(module)}) for name, tree in machines.items()
    }
    assert not {name: modules for name, modules in impure.items() if modules}


def _is_machine(name: str) -> bool:
    return name.endswith(("_machine.py", "/machine_events.py", "_schedule.py"))


def _is_impure(module: str) -> bool:
    return module.split(".")[0] in IMPURE or module.startswith("millstream.engine")
