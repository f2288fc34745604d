"""Operator behaviour as a transcript: what goes in, step by step, and what must come out.

Promises: a transcript is replayed in several ways that must not show (`WAYS`): as written, one row at a time, with a
snapshot and restore between steps, rescaled from 1 to 3 to 2 subtasks, on disk, in blocks of one row, with compacted
state. Each step's output must be the same in all of them; the order counts within a key only.
Does not know: what operators mean; `vocabulary` does.

A step may have rows ([key, timestamp, value] each), `side` (the input they go to), `watermark` (also `idle`), `end`,
`processing_time`; and what is expected: `emits`, `late`, `dropped` (how many more were late), `forwards` (a watermark).
Needs PyYAML."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from millstream.errors import UserError
from millstream.runtime.operators.window import LATE_COUNT
from millstream.state.compaction import Compaction, Rewrite
from millstream.state.handles import Lineage
from millstream.testing.ends import Mark, Rows
from millstream.testing.harness import OperatorHarness, Record
from millstream.testing.vocabulary import LATE, NAMED_PAIR, UnderTest, Word, operator
from millstream.types.row import Row

_KEYS = {"rows", "side", "watermark", "processing_time", "end", "emits", "late", "dropped", "forwards"}


class MalformedTranscript(UserError):
    """A transcript that cannot be read."""


class Disagreement(AssertionError):
    """A step did not give what the transcript says."""


@dataclass(frozen=True)
class Transcript:
    """One operator, or several that must agree, and the steps."""

    name: str
    operators: tuple[str, ...]
    steps: tuple[Mapping[str, Any], ...]
    rescales: bool = True


@dataclass(frozen=True)
class Way:
    """How a transcript is replayed."""

    by_row: bool = False
    restore: bool = False
    rescale: bool = False
    backend: str = "hashmap"
    block_records: int = 65536
    cache_limit: int | None = None
    compact: Callable[[Lineage], Compaction | None] = lambda _: None


def _often(lineage: Lineage) -> Compaction | None:
    """Compact at most chances: the changes into one file, a small part of the base, or everything."""
    count = len(lineage.own)
    if count < 2:
        return None
    return (max(1, len(lineage.bases)), Rewrite(1, rows=2), Rewrite(1, rows=2), 0)[count % 4]


WAYS: Mapping[str, Way] = {
    "as written": Way(),
    "row by row": Way(by_row=True),
    "restored": Way(restore=True),
    "rescaled": Way(rescale=True),
    "on disk": Way(backend="rocksdb"),
    "on disk, restored": Way(backend="rocksdb", restore=True, by_row=True, cache_limit=0),
    "on disk, rescaled": Way(backend="rocksdb", rescale=True, compact=_often),
    "blocks of one": Way(block_records=1),
    "compacted": Way(compact=_often, restore=True),
}


def load(path: Path) -> list[Transcript]:
    """The transcripts of a file, one per YAML document."""
    return [_transcript(path.stem, each) for each in yaml.safe_load_all(path.read_text(encoding="utf-8"))]


def _transcript(stem: str, data: Any) -> Transcript:
    if not isinstance(data, dict) or "steps" not in data:
        msg = f"a transcript in '{stem}' has no steps"
        raise MalformedTranscript(msg)
    operators = data["operators"] if "operators" in data else [data["operator"]]
    for step in data["steps"]:
        if unknown := set(step) - _KEYS:
            msg = f"a step of '{stem}' has {sorted(unknown)}"
            raise MalformedTranscript(msg, hint=f"there are {sorted(_KEYS)}")
    name = f"{stem}: {data.get('name', operators[0])}"
    return Transcript(name, tuple(operators), tuple(data["steps"]), data.get("rescales", True))


def parse(text: str) -> Word:
    """A call such as `window(tumbling=10, trigger=purging(count(3)))` as a value; nothing of it is executed."""
    try:
        tree = ast.parse(text, mode="eval").body
        word = _read(tree)
    except (SyntaxError, ValueError) as problem:
        msg = f"'{text}' is not a call: {problem}"
        raise MalformedTranscript(msg) from None
    return word if isinstance(word, Word) else Word(str(word))


def _read(node: ast.expr) -> Any:
    match node:
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=named):
            pairs = tuple((str(each.arg), _read(each.value)) for each in named)
            return Word(name, tuple(map(_read, arguments)), pairs)
        case ast.Name(id=name):
            return name
        case ast.List(elts=elements):
            return [_read(each) for each in elements]
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return -value
    raise ValueError(ast.unparse(node))


def replay(transcript: Transcript, ways: Mapping[str, Way] = WAYS) -> None:
    """Replay in every way; raises `Disagreement` at the first step that differs from what is written."""
    for text in transcript.operators:
        for name, way in ways.items():
            if way.rescale and not transcript.rescales:
                continue
            _replay(transcript, text, name, way)


def _replay(transcript: Transcript, text: str, name: str, way: Way) -> None:
    tested = operator(parse(text))
    count = len(transcript.steps)
    with OperatorHarness(
        tested.define,
        input_types=tested.input_types,
        side_outputs=tested.side_outputs,
        backend=way.backend,
        block_records=way.block_records,
        cache_limit=way.cache_limit,
        compact=way.compact,
    ) as harness:
        for index, step in enumerate(transcript.steps):
            if way.rescale and index in (max(1, count // 3), max(2, 2 * count // 3)):
                harness.rescale(3 if index == max(1, count // 3) else 2)
            for part in _parts(step, tested, by_row=way.by_row):
                if way.restore:
                    harness.restore(harness.snapshot())
                part(harness)
            try:
                _check(step, tested, harness)
            except Disagreement as problem:
                where = f"{transcript.name}, {text}, {name}, step {index + 1} {dict(step)}"
                msg = f"{where}\n{problem}"
                raise Disagreement(msg) from None


def _parts(step: Mapping[str, Any], tested: UnderTest, *, by_row: bool) -> Iterator[Callable[[OperatorHarness], None]]:
    """A step as the epochs it is run in."""
    side = step.get("side", 0)
    rows = [(_record(row, tested), row[1]) for row in step.get("rows", ())]
    pieces: list[Rows | Mark] = [Rows((value,), (time,)) for value, time in rows] if by_row else []
    if rows and not by_row:
        pieces = [Rows(tuple(value for value, _ in rows), tuple(time for _, time in rows))]
    if "processing_time" in step:
        yield lambda harness: harness.processing_time(step["processing_time"])
    if "watermark" in step:
        mark = Mark(None if step["watermark"] == "idle" else step["watermark"])
        if "side" not in step and tested.inputs > 1:
            yield lambda harness: harness.step({0: [mark], 1: [mark]})
        else:
            pieces.append(mark)
    if by_row:
        for piece in pieces:
            yield lambda harness, each=piece: harness.step({side: [each]})  # type: ignore[misc]
    elif pieces:
        yield lambda harness: harness.step({side: pieces})
    if step.get("end"):
        yield lambda harness: harness.end_of_input(step.get("side"))


def _record(row: Sequence[Any], tested: UnderTest) -> Any:
    key, _, value = row
    if tested.kind is NAMED_PAIR:
        return Row(key=key, value=value)
    return key, value


def _check(step: Mapping[str, Any], tested: UnderTest, harness: OperatorHarness) -> None:
    results = [tested.result(value, time) for value, time in harness.take_output()]
    _compare("emits", step.get("emits", []), results)
    if tested.side_outputs:
        late = [[*_pair(record), record.timestamp] for record in harness.side_output(LATE)]
        _compare("late", step.get("late", []), [[key, time, value] for key, value, time in late])
    if "dropped" in step and harness.counter(LATE_COUNT) != step["dropped"]:
        msg = f"dropped so far: {harness.counter(LATE_COUNT)}, not {step['dropped']}"
        raise Disagreement(msg)
    if "forwards" in step:
        last = harness.marks[-1] if harness.marks else "nothing"
        if ("idle" if last is None else last) != step["forwards"]:
            msg = f"forwards {last}, not {step['forwards']}; all so far: {harness.marks}"
            raise Disagreement(msg)


def _pair(record: Record) -> tuple[Any, Any]:
    return record.value[0], record.value[1]


def _compare(what: str, expected: Sequence[Any], found: Sequence[Any]) -> None:
    if _by_key(expected) != _by_key(found):
        msg = f"{what} {found}\n not {list(expected)}"
        raise Disagreement(msg)


def _by_key(rows: Sequence[Any]) -> dict[str, list[Any]]:
    """Rows by key, in order; the order between keys is open."""
    grouped: dict[str, list[Any]] = {}
    for key, *rest in rows:
        grouped.setdefault(repr(key), []).append(rest)
    return grouped
