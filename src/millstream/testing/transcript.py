"""Transcripts: tests of operators as YAML files with the input of each step and the expected output.

Promises: a transcript is replayed in several ways (`WAYS`): as written, one row at a time, with a snapshot and restore
between steps, rescaled from 1 to 3 to 2 subtasks, on disk, in blocks of one row, with compacted state. The output of
each step must be the same in all of them; the order matters only within a key.
Does not know: which operators exist; `vocabulary` does.

A step may have `rows` ([key, timestamp, value] each), `side` (the input of the rows), `watermark` (or `idle`), `end`
and `processing_time`. The expected results are `emits`, `late`, `dropped` (the number of late records so far) and
`forwards` (a watermark). Needs PyYAML."""

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
from millstream.testing.ends import Rows, Watermark
from millstream.testing.harness import OperatorHarness, Record
from millstream.testing.vocabulary import LATE, NAMED_PAIR, UnderTest, Word, operator
from millstream.types.row import Row

_KEYS = {"rows", "side", "watermark", "processing_time", "end", "emits", "late", "dropped", "forwards"}


class MalformedTranscript(UserError):
    """A file is not a transcript."""


class Disagreement(AssertionError):
    """The output of a step differs from the transcript."""


@dataclass(frozen=True)
class Transcript:
    """The steps of a test, and the operators that must behave alike in it."""

    name: str
    operators: tuple[str, ...]
    steps: tuple[Mapping[str, Any], ...]
    rescales: bool = True


@dataclass(frozen=True)
class Way:
    """How a transcript is replayed: cut into epochs, restored, rescaled, and on which backend."""

    by_row: bool = False
    restore: bool = False
    rescale: bool = False
    backend: str = "hashmap"
    block_records: int = 65536
    cache_limit: int | None = None
    compact: Callable[[Lineage], Compaction | None] = lambda _: None


def _compact_often(lineage: Lineage) -> Compaction | None:
    """Compact often: deltas into one file, a small part of the base, or everything."""
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
    "on disk, rescaled": Way(backend="rocksdb", rescale=True, compact=_compact_often),
    "blocks of one": Way(block_records=1),
    "compacted": Way(compact=_compact_often, restore=True),
}


def load(path: Path) -> list[Transcript]:
    """Load the transcripts of a file, one for each YAML document.

    Raises:
        MalformedTranscript: A document is not a transcript.

    """
    return [_parse_transcript(path.stem, document) for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))]


def _parse_transcript(stem: str, data: Any) -> Transcript:
    if not isinstance(data, dict) or "steps" not in data:
        msg = f"a transcript in '{stem}' has no steps"
        raise MalformedTranscript(msg)
    operators = data["operators"] if "operators" in data else [data["operator"]]
    for step in data["steps"]:
        if unknown := set(step) - _KEYS:
            msg = f"a step of '{stem}' has unknown keys {sorted(unknown)}"
            raise MalformedTranscript(msg, hint=f"the keys of a step are {sorted(_KEYS)}")
    name = f"{stem}: {data.get('name', operators[0])}"
    return Transcript(name, tuple(operators), tuple(data["steps"]), data.get("rescales", True))


def parse(text: str) -> Word:
    """Parse a call such as `window(tumbling=10, trigger=purging(count(3)))`; nothing is executed."""
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
            pairs = tuple((str(keyword.arg), _read(keyword.value)) for keyword in named)
            return Word(name, tuple(map(_read, arguments)), pairs)
        case ast.Name(id=name):
            return name
        case ast.List(elts=elements):
            return [_read(element) for element in elements]
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
            return -value
    raise ValueError(ast.unparse(node))


def replay(transcript: Transcript, ways: Mapping[str, Way] = WAYS) -> None:
    """Replay a transcript in every way.

    Raises:
        Disagreement: The output of a step differs from the transcript.

    """
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
            for part in _create_epochs(step, tested, by_row=way.by_row):
                if way.restore:
                    harness.restore(harness.snapshot())
                part(harness)
            try:
                _check(step, tested, harness)
            except Disagreement as problem:
                where = f"{transcript.name}, {text}, {name}, step {index + 1} {dict(step)}"
                msg = f"{where}\n{problem}"
                raise Disagreement(msg) from None


def _create_epochs(
    step: Mapping[str, Any], tested: UnderTest, *, by_row: bool
) -> Iterator[Callable[[OperatorHarness], None]]:
    """Yield the epochs of a step, as functions of the harness."""
    side = step.get("side", 0)
    rows = [(_record(row, tested), row[1]) for row in step.get("rows", ())]
    work: list[Rows | Watermark] = [Rows((value,), (time,)) for value, time in rows] if by_row else []
    if rows and not by_row:
        work = [Rows(tuple(value for value, _ in rows), tuple(time for _, time in rows))]
    if "processing_time" in step:
        yield lambda harness: harness.processing_time(step["processing_time"])
    if "watermark" in step:
        watermark = Watermark(None if step["watermark"] == "idle" else step["watermark"])
        if "side" not in step and tested.inputs > 1:
            yield lambda harness: harness.step({0: [watermark], 1: [watermark]})
        else:
            work.append(watermark)
    if by_row:
        for item in work:
            yield lambda harness, item=item: harness.step({side: [item]})  # type: ignore[misc]
    elif work:
        yield lambda harness: harness.step({side: work})
    if step.get("end"):
        yield lambda harness: harness.end_of_input(step.get("side"))


def _record(row: Sequence[Any], tested: UnderTest) -> Any:
    key, _, value = row
    if tested.input_type is NAMED_PAIR:
        return Row(key=key, value=value)
    return key, value


def _check(step: Mapping[str, Any], tested: UnderTest, harness: OperatorHarness) -> None:
    results = [tested.result(value, time) for value, time in harness.take_output()]
    _compare("emits", step.get("emits", []), results)
    if tested.side_outputs:
        late = [[*_get_key_and_value(record), record.timestamp] for record in harness.side_output(LATE)]
        _compare("late", step.get("late", []), [[key, time, value] for key, value, time in late])
    if "dropped" in step and harness.counter(LATE_COUNT) != step["dropped"]:
        msg = f"dropped so far: {harness.counter(LATE_COUNT)}, not {step['dropped']}"
        raise Disagreement(msg)
    if "forwards" in step:
        last = harness.watermarks[-1] if harness.watermarks else "nothing"
        if ("idle" if last is None else last) != step["forwards"]:
            msg = f"forwards {last}, not {step['forwards']}; all so far: {harness.watermarks}"
            raise Disagreement(msg)


def _get_key_and_value(record: Record) -> tuple[Any, Any]:
    return record.value[0], record.value[1]


def _compare(what: str, expected: Sequence[Any], actual: Sequence[Any]) -> None:
    if _group_by_key(expected) != _group_by_key(actual):
        msg = f"{what} {actual}\n not {list(expected)}"
        raise Disagreement(msg)


def _group_by_key(rows: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the rows by key, in order; the order between keys is not defined."""
    grouped: dict[str, list[Any]] = {}
    for key, *rest in rows:
        grouped.setdefault(repr(key), []).append(rest)
    return grouped
