"""Two outputs compared: the one that went through chaos, and the one of a run without faults.

Promises: a line that is missing, doubled, changed or out of its key's order is found, whatever files it is in.
Does not know: how the lines came to be. A line is `kind key sequence ...`, with a sequence that grows within a key."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path


def lines_by_file(directory: Path) -> dict[str, list[str]]:
    """The visible lines below a directory, by file, in order."""
    return {
        str(file.relative_to(directory)): file.read_text(encoding="utf-8").splitlines()
        for file in sorted(directory.rglob("*"))
        if file.is_file() and not any(part.startswith((".", "_")) for part in file.relative_to(directory).parts)
    }


def digest(lines: Iterable[str]) -> str:
    """A hash of lines sorted by kind, key and sequence."""
    hashed = hashlib.sha256()
    for line in sorted(lines, key=_place):
        hashed.update(line.encode() + b"\n")
    return hashed.hexdigest()


def differences(found: dict[str, list[str]], expected: dict[str, list[str]]) -> Iterator[str]:
    """What is wrong with `found`, one sentence per kind of fault."""
    have = Counter(line for lines in found.values() for line in lines)
    want = Counter(line for lines in expected.values() for line in lines)
    if not want:
        yield "the run without faults has no output"
    if digest(have.elements()) != digest(want.elements()):
        missing, more = want - have, have - want
        if missing:
            yield f"{missing.total()} lines are missing, such as {next(iter(missing))!r}"
        doubled = [line for line in more if line in want]
        if doubled:
            yield f"{len(doubled)} lines are there too often, such as {doubled[0]!r}"
        strange = [line for line in more if line not in want]
        if strange:
            yield f"{len(strange)} lines should not be there, such as {strange[0]!r}"
    yield from disorder(found)


def disorder(found: dict[str, list[str]]) -> Iterator[str]:
    """Keys whose lines are not in the order of their sequence: within a file, or because two files interleave."""
    spans: dict[tuple[str, str], list[tuple[int, int, str]]] = {}
    for file, lines in found.items():
        last: dict[tuple[str, str], tuple[int, int]] = {}
        for line in lines:
            kind, key, sequence = _place(line)
            begin, before = last.get((kind, key), (sequence, sequence))
            if sequence < before:
                yield f"{file}: '{kind} {key}' has {sequence} after {before}"
                return
            last[kind, key] = begin, sequence
        for place, (begin, end) in last.items():
            spans.setdefault(place, []).append((begin, end, file))
    for (kind, key), parts in spans.items():
        parts.sort()
        for (_, end, one), (begin, _, other) in pairwise(parts):
            if begin < end:
                yield f"'{kind} {key}' is interleaved in {one} and {other}"
                return


def _place(line: str) -> tuple[str, str, int]:
    kind, key, sequence, *_ = line.split(" ")
    return kind, key, int(sequence)
