"""`millstream state ls|cat|diff`: shows the entries of a checkpoint or savepoint.

Promises: nothing is changed, and no code of the savepoint is executed; control characters in values are escaped, so
that they cannot move the cursor of a terminal.
Does not know: how state is stored."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from millstream.graph.explain import align_columns, printable
from millstream.serialization.codec_errors import UnsafeData
from millstream.state_processor import Savepoint, SavepointState

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_LONGEST = 120


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("state", help="show the state in checkpoints and savepoints")
    actions = parser.add_subparsers(title="actions", metavar="<action>", required=True)
    listed = actions.add_parser("ls", help="list operators and their states")
    listed.add_argument("path", metavar="PATH", help="the directory of a savepoint, or a chk-N")
    listed.add_argument("--json", action="store_true", help="print JSON")
    listed.set_defaults(run=run_ls)
    cat = actions.add_parser("cat", help="print the entries of a state")
    cat.add_argument("path", metavar="PATH", help="the directory of a savepoint, or a chk-N")
    cat.add_argument("operator", metavar="OPERATOR", help="the uid, name or id of the operator")
    cat.add_argument("state", metavar="STATE", help="the name of the state")
    cat.add_argument(
        "--limit", type=int, default=100, metavar="N", help="print at most N entries (default: 100; 0 for all)"
    )
    cat.add_argument("--json", action="store_true", help="print one JSON object per entry")
    cat.set_defaults(run=run_cat)
    diff = actions.add_parser("diff", help="compare the entries of two savepoints or checkpoints")
    diff.add_argument("old", metavar="OLD", help="the directory of a savepoint, or a chk-N")
    diff.add_argument("new", metavar="NEW", help="another savepoint or checkpoint")
    diff.add_argument(
        "--limit", type=int, default=10, metavar="N", help="print at most N entries of each state (default: 10)"
    )
    diff.set_defaults(run=run_diff)


def run_ls(args: argparse.Namespace) -> int:
    """List states."""
    rows = [("OPERATOR", "STATE", "KIND", "ENTRIES", "KEY", "VALUE")]
    objects: list[dict[str, Any]] = []
    for operator in Savepoint(args.path).operators():
        for state in operator.states():
            kind = state.kind or "internal"
            kind = f"{kind}, ttl" if state.schema.ttl else kind
            name = operator.uid or operator.name
            rows.append((name, state.name, kind, _count(state), str(state.key_type), str(state.value_type)))
            objects.append(dict(zip(("operator", "state", "kind", "entries", "key", "value"), rows[-1], strict=True)))
    if args.json:
        print(json.dumps(objects, indent=2))
    else:
        _print(align_columns([tuple(printable(cell) for cell in row) for row in rows]))
    return 0


def _count(state: SavepointState) -> str:
    try:
        return str(len(state))
    except UnsafeData:  # values of classes of the program, which this process does not have
        return "?"


def run_cat(args: argparse.Namespace) -> int:
    """Print entries."""
    state = Savepoint(args.path).operator(args.operator).state(args.state)
    table = state.to_arrow()
    visible = table if args.limit == 0 else table.slice(0, args.limit)
    frame = visible.to_pandas(maps_as_pydicts="strict")
    if args.json:
        for index in range(len(frame)):
            print(json.dumps({name: _to_python(frame[name].iloc[index]) for name in frame.columns}, default=repr))
        return 0
    rows = [tuple(frame.columns)]
    rows += [tuple(_format_cell(frame[name].iloc[index]) for name in frame.columns) for index in range(len(frame))]
    _print(align_columns(rows))
    if visible.num_rows < table.num_rows:
        print(f"... {table.num_rows - visible.num_rows} more; --limit 0 for all")
    return 0


def run_diff(args: argparse.Namespace) -> int:
    """Compare two savepoints; the exit code is 1 if they differ."""
    old, new = _states_by_name(Savepoint(args.old)), _states_by_name(Savepoint(args.new))
    differs = False
    for operator, state in dict.fromkeys([*old, *new]):
        lines = list(_format_differences(old.get((operator, state)), new.get((operator, state)), args.limit))
        if lines:
            differs = True
            print(f"{printable(operator)} / {printable(state)}")
            _print(f"  {line}" for line in lines)
    if not differs:
        print("no difference")
    return 1 if differs else 0


def _states_by_name(savepoint: Savepoint) -> dict[tuple[str, str], SavepointState]:
    """The states by the uid or name of their operator and their own name."""
    return {
        (operator.uid or operator.name, state.name): state
        for operator in savepoint.operators()
        for state in operator.states()
    }


def _format_differences(old: SavepointState | None, new: SavepointState | None, limit: int) -> Iterator[str]:
    before = {} if old is None else old.entries()
    after = {} if new is None else new.entries()
    if old is not None and new is not None and str(old.value_type) != str(new.value_type):
        yield f"type {printable(str(old.value_type))} becomes {printable(str(new.value_type))}"
    lines = [f"- {_format_cell(key)}: {_format_cell(value)}" for key, value in before.items() if key not in after]
    lines += [f"+ {_format_cell(key)}: {_format_cell(value)}" for key, value in after.items() if key not in before]
    lines += [
        f"~ {_format_cell(key)}: {_format_cell(before[key])} becomes {_format_cell(value)}"
        for key, value in after.items()
        if key in before and before[key] != value
    ]
    yield from lines[:limit]
    if len(lines) > limit:
        yield f"... {len(lines) - limit} more"


def _to_python(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def _format_cell(value: Any) -> str:
    python_value = _to_python(value)
    text = printable(python_value if isinstance(python_value, str) else repr(python_value))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _print(lines: Iterable[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
