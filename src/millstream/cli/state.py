"""`millstream state ls|cat|diff`: what is in a checkpoint or savepoint, entry by entry.

Promises: nothing is changed or executed; what files say is shown so that it cannot move a terminal's cursor.
Does not know: how state is stored."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from millstream.graph.explain import aligned, printable
from millstream.serialization.codec_errors import UnsafeData
from millstream.state_processor import Savepoint, SavepointOperator, SavepointState

if TYPE_CHECKING:
    from argparse import _SubParsersAction

_LONGEST = 120


def add_parser(subparsers: _SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its arguments."""
    parser = subparsers.add_parser("state", help="look into checkpoints and savepoints")
    actions = parser.add_subparsers(title="actions", metavar="<action>", required=True)
    listed = actions.add_parser("ls", help="list operators and their states")
    listed.add_argument("path", metavar="PATH", help="a savepoint's directory, or a chk-N")
    listed.add_argument("--json", action="store_true", help="print JSON")
    listed.set_defaults(run=run_ls)
    cat = actions.add_parser("cat", help="print the entries of a state")
    cat.add_argument("path", metavar="PATH", help="a savepoint's directory, or a chk-N")
    cat.add_argument("operator", metavar="OPERATOR", help="an operator's uid, name or id")
    cat.add_argument("state", metavar="STATE", help="the name of a state")
    cat.add_argument("--limit", type=int, default=100, metavar="N", help="how many entries (default 100; 0 for all)")
    cat.add_argument("--json", action="store_true", help="one JSON object an entry")
    cat.set_defaults(run=run_cat)
    diff = actions.add_parser("diff", help="compare the entries of two snapshots")
    diff.add_argument("old", metavar="OLD", help="a savepoint's directory, or a chk-N")
    diff.add_argument("new", metavar="NEW", help="another one")
    diff.add_argument("--limit", type=int, default=10, metavar="N", help="how many entries of each state (default 10)")
    diff.set_defaults(run=run_diff)


def run_ls(args: argparse.Namespace) -> int:
    """List states."""
    rows = [("OPERATOR", "STATE", "KIND", "ENTRIES", "KEY", "VALUE")]
    told: list[dict[str, Any]] = []
    for operator in Savepoint(args.path).operators():
        for state in operator.states():
            kind = state.kind or "internal"
            kind = f"{kind}, ttl" if state.schema.ttl else kind
            called = operator.uid or operator.name
            rows.append((called, state.name, kind, _count(state), str(state.key_type), str(state.value_type)))
            told.append(dict(zip(("operator", "state", "kind", "entries", "key", "value"), rows[-1], strict=True)))
    if args.json:
        print(json.dumps(told, indent=2))
    else:
        _print(aligned([tuple(printable(cell) for cell in row) for row in rows]))
    return 0


def _count(state: SavepointState) -> str:
    try:
        return str(len(state))
    except UnsafeData:  # objects of the program's classes, which are not here
        return "?"


def run_cat(args: argparse.Namespace) -> int:
    """Print entries."""
    state = Savepoint(args.path).operator(args.operator).state(args.state)
    table = state.to_arrow()
    shown = table if args.limit == 0 else table.slice(0, args.limit)
    frame = shown.to_pandas(maps_as_pydicts="strict")
    if args.json:
        for place in range(len(frame)):
            print(json.dumps({name: _plain(frame[name].iloc[place]) for name in frame.columns}, default=repr))
        return 0
    rows = [tuple(frame.columns)]
    rows += [tuple(_cell(frame[name].iloc[place]) for name in frame.columns) for place in range(len(frame))]
    _print(aligned(rows))
    if shown.num_rows < table.num_rows:
        print(f"... {table.num_rows - shown.num_rows} more; --limit 0 for all")
    return 0


def run_diff(args: argparse.Namespace) -> int:
    """Compare two snapshots; exit code 1 if they differ."""
    old, new = _states(Savepoint(args.old)), _states(Savepoint(args.new))
    differs = False
    for place in dict.fromkeys([*old, *new]):
        lines = list(_differences(old.get(place), new.get(place), args.limit))
        if lines:
            differs = True
            print(f"{printable(place[0])} / {printable(place[1])}")
            _print(f"  {line}" for line in lines)
    if not differs:
        print("no difference")
    return 1 if differs else 0


def _states(savepoint: Savepoint) -> dict[tuple[str, str], SavepointState]:
    def called(operator: SavepointOperator) -> str:
        return operator.uid or operator.name

    return {(called(each), state.name): state for each in savepoint.operators() for state in each.states()}


def _differences(old: SavepointState | None, new: SavepointState | None, limit: int) -> Iterator[str]:
    before = {} if old is None else old.entries()
    after = {} if new is None else new.entries()
    if old is not None and new is not None and str(old.value_type) != str(new.value_type):
        yield f"type {printable(str(old.value_type))} becomes {printable(str(new.value_type))}"
    lines = [f"- {_cell(key)}: {_cell(value)}" for key, value in before.items() if key not in after]
    lines += [f"+ {_cell(key)}: {_cell(value)}" for key, value in after.items() if key not in before]
    lines += [
        f"~ {_cell(key)}: {_cell(before[key])} becomes {_cell(value)}"
        for key, value in after.items()
        if key in before and before[key] != value
    ]
    yield from lines[:limit]
    if len(lines) > limit:
        yield f"... {len(lines) - limit} more"


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def _cell(value: Any) -> str:
    plain = _plain(value)
    text = printable(plain if isinstance(plain, str) else repr(plain))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _print(lines: Iterable[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
