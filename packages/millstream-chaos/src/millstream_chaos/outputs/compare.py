"""Comparison of the output of a run with faults with the expected output.

Promises: finds lines that are missing, duplicated, changed or not in the order of their key, in any file.
Does not know: where the lines come from. A line is `stream key sequence ...`; the sequence grows within a key."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path


def read_lines(directory: Path) -> dict[str, list[str]]:
    """Return the visible lines below a directory, by file, in order."""
    return {
        str(file.relative_to(directory)): file.read_text(encoding="utf-8").splitlines()
        for file in sorted(directory.rglob("*"))
        if file.is_file() and not any(part.startswith((".", "_")) for part in file.relative_to(directory).parts)
    }


def hash_lines(lines: Iterable[str]) -> str:
    """Return a hash of the lines, sorted by stream, key and sequence."""
    hashed = hashlib.sha256()
    for line in sorted(lines, key=_sort_key):
        hashed.update(line.encode() + b"\n")
    return hashed.hexdigest()


def find_differences(output: dict[str, list[str]], expected: dict[str, list[str]]) -> Iterator[str]:
    """Yield the problems of the output, one sentence for each type of problem."""
    actual = Counter(line for lines in output.values() for line in lines)
    wanted = Counter(line for lines in expected.values() for line in lines)
    if not wanted:
        yield "the run without faults has no output"
    if hash_lines(actual.elements()) != hash_lines(wanted.elements()):
        missing, more = wanted - actual, actual - wanted
        if missing:
            yield f"{missing.total()} lines are missing, such as {next(iter(missing))!r}"
        duplicates = [line for line in more if line in wanted]
        if duplicates:
            yield f"{len(duplicates)} lines are duplicated, such as {duplicates[0]!r}"
        unexpected = [line for line in more if line not in wanted]
        if unexpected:
            yield f"{len(unexpected)} lines are unexpected, such as {unexpected[0]!r}"
    yield from find_disorder(output)


def find_disorder(output: dict[str, list[str]]) -> Iterator[str]:
    """Yield a key whose lines are out of order: within a file, or because two files interleave."""
    spans: dict[tuple[str, str], list[tuple[int, int, str]]] = {}
    for file, lines in output.items():
        last: dict[tuple[str, str], tuple[int, int]] = {}
        for line in lines:
            stream, key, sequence = _sort_key(line)
            begin, before = last.get((stream, key), (sequence, sequence))
            if sequence < before:
                yield f"{file}: '{stream} {key}' has {sequence} after {before}"
                return
            last[stream, key] = begin, sequence
        for stream_key, (begin, end) in last.items():
            spans.setdefault(stream_key, []).append((begin, end, file))
    for (stream, key), parts in spans.items():
        parts.sort()
        for (_, end, one), (begin, _, other) in pairwise(parts):
            if begin < end:
                yield f"'{stream} {key}' is interleaved in {one} and {other}"
                return


def _sort_key(line: str) -> tuple[str, str, int]:
    stream, key, sequence, *_ = line.split(" ")
    return stream, key, int(sequence)
