"""Checks a pickle without executing it.

Promises: `inspect` reads every opcode and raises `BadPickle` for a pickle that could take more memory for its size than
any pickle of a pickler: lengths beyond its end, frames that overlap or end inside an opcode, memo numbers beyond its
size, more sets or calls than a pickler could have written into so many bytes, values nested so deeply that hashing them
would overflow the stack. An accepted pickle takes at most about 130 bytes of memory for each of its bytes, as a list of
empty sets does; `metered` limits what calls copy. The memory of the check does not depend on numbers in the pickle.
Does not know: which globals may be loaded; the unpickler of `codec` decides that."""

from __future__ import annotations

import re

MAX_DEPTH = 50_000  # hashing nested tuples takes C stack for each level, and a stack overflow ends the process

# Opcodes by the size of their argument. Opcodes that load a global, or whose argument is a length or a number that must
# be checked, are not in this table; they are handled one at a time.
_FIXED = {
    0: b"()]}N012.Rboeuastdl\x81\x85\x86\x87\x88\x89\x8f\x90\x91\x92\x94\x97\x98",
    1: b"hKq\x80",
    2: b"M",
    4: b"Jj",
    8: b"G",
}
_COUNTED_SHORT = b"\x8cC\x8aU"  # with a length of one byte: text, bytes, and integers
_COUNTED = {ord("X"): 4, ord("B"): 4, ord("T"): 4, 0x8B: 4, 0x8D: 8, 0x8E: 8, 0x96: 8}
_LINES = frozenset(b"FILSVgp")
_GLOBALS = {ord("c"): 2, ord("i"): 2, ord("P"): 1}  # the number of lines of the argument
_STACK_GLOBAL, _BINPERSID = 0x93, ord("Q")
_EXTENSIONS = {0x82: 1, 0x83: 2, 0x84: 4}
_LONG_BINPUT, _FRAME = ord("r"), 0x95
_TUPLES = b"\x85\x86\x87tR\x81"
# The fewest bytes that a pickler writes for the values that take most memory for their opcode. A set is also stored in
# the memo. A call needs its function and its arguments, which are at least two references, and is stored in the memo.
# Lists, dicts and tuples are not counted: each takes less than 130 bytes, for an opcode of one byte.
_EMPTY_SET, _FROZENSET, _REDUCE = 0x8F, 0x91, ord("R")
_COSTS = {_EMPTY_SET: 2, _FROZENSET: 3, _REDUCE: 6}


def _character_class(codes: bytes) -> bytes:
    return b"[" + b"".join(re.escape(bytes([code])) for code in codes) + b"]"


def _compile_run(more: bytes = b"", without: bytes = b"", frames: bool = False) -> re.Pattern[bytes]:
    """Compile a pattern for any number of opcodes that need no check, in the form that `re` matches fastest."""
    bare = _character_class((_FIXED[0] + more).translate(None, without)) + b"*+"
    lengths = b"|".join(re.escape(bytes([length])) + b".{%d}" % length for length in range(256))
    text, *others = (re.escape(bytes([code])) + b"(?:" + lengths + b")" for code in _COUNTED_SHORT)
    fixed = [re.escape(bytes([code])) + b"." * size for size, codes in _FIXED.items() if size for code in codes]
    if frames:
        fixed.append(re.escape(bytes([_FRAME])) + b"." * 8)
    return re.compile(b"(?s:" + bare + b"(?:(?:" + b"|".join([text, *fixed, *others]) + b")" + bare + b")*+)")


_RUN, _RUN_WITH_GLOBALS = _compile_run(), _compile_run(bytes([_STACK_GLOBAL]))
# Matches pickles that need no check unless they are very long; most are like that. They load no global, so the standard
# unpickler reads them from memory, where frames have no effect.
is_plain = _compile_run(without=bytes(_COSTS), frames=True).fullmatch


class BadPickle(ValueError):
    """A pickle that no pickler has written."""


class LoadsExtension(BadPickle):
    """A pickle that loads a global by a registered number, without a call of `find_class`."""

    def __init__(self, code: int) -> None:
        self.code = code
        super().__init__(f"extension code {code}")


def inspect(data: bytes) -> bool:
    """Return whether a pickle loads globals; raise `BadPickle` if it could take too much memory."""
    loads_globals, offset, end = False, 0, len(data)
    frame_end = 0
    run = _RUN
    while True:
        limit = frame_end if offset < frame_end else end
        match = run.match(data, offset, limit)
        assert match is not None  # a run may be empty
        offset = match.end()
        if offset >= end:
            break
        if offset == limit:
            continue
        code = data[offset]
        if code == _FRAME:
            # The unpickler skips bytes of overlapping frames, so it would read other opcodes than this check.
            if offset < frame_end:
                message = f"a frame begins at byte {offset}, inside the frame that ends at {frame_end}"
                raise BadPickle(message)
            frame_end = offset + 9 + int.from_bytes(data[offset + 1 : offset + 9], "little")
            offset += 9
            if frame_end > end:
                message = f"a frame ends at byte {frame_end}, but there are {end} bytes"
                raise BadPickle(message)
        elif code in _COUNTED:
            size = _COUNTED[code]
            length = int.from_bytes(data[offset + 1 : offset + 1 + size], "little")
            offset += 1 + size + length
            if offset > end:
                message = f"a length of {length} at byte {offset - length}, but there are {end} bytes"
                raise BadPickle(message)
        elif code == _LONG_BINPUT:
            _check_memo(int.from_bytes(data[offset + 1 : offset + 5], "little"), end)
            offset += 5
        elif code in _LINES or code in _GLOBALS:
            loads_globals = loads_globals or code in _GLOBALS
            start, offset = offset + 1, _after_lines(data, offset + 1, _GLOBALS.get(code, 1))
            if code == ord("p"):
                _check_memo(_number(data[start : offset - 1]), end)
        elif code in (_STACK_GLOBAL, _BINPERSID):
            loads_globals, run = True, _RUN_WITH_GLOBALS
            offset += 1
        elif code in _EXTENSIONS:
            number = int.from_bytes(data[offset + 1 : offset + 1 + _EXTENSIONS[code]], "little")
            raise LoadsExtension(number)
        else:
            message = f"the byte {code:#04x} at {offset} is not an opcode, or its argument is incomplete"
            raise BadPickle(message)
        if limit == frame_end < offset:
            message = f"an opcode extends beyond the end of its frame, byte {frame_end}"
            raise BadPickle(message)
    _check_costs(data)
    if end >= MAX_DEPTH and end - len(data.translate(None, _TUPLES)) >= MAX_DEPTH:
        check_depth(data)
    return loads_globals


def _check_costs(data: bytes) -> None:
    """Raise `BadPickle` if there are more sets or calls than a pickler could have written. Bytes of texts may look like
    opcodes, so opcodes are read one by one only if a count of all bytes exceeds the limit."""
    offset, end, cost = 0, len(data), 0
    if 2 * data.count(_EMPTY_SET) + 3 * data.count(_FROZENSET) + 6 * data.count(_REDUCE) <= end:
        return
    while offset < end:
        code = data[offset]
        cost += _COSTS.get(code, 0)
        offset = _argument_end(data, code, offset + 1)
    if cost > end:
        message = f"more sets and calls than a pickler writes into {end} bytes"
        raise BadPickle(message)


def _check_memo(number: int, size: int) -> None:
    if number > size:
        message = f"a memo number of {number} in {size} bytes"
        raise BadPickle(message)


def _number(line: bytes) -> int:
    try:
        return int(line[:20])
    except ValueError:
        message = f"a memo number of {line[:20]!r}"
        raise BadPickle(message) from None


def _after_lines(data: bytes, offset: int, count: int) -> int:
    for _ in range(count):
        offset = data.find(b"\n", offset) + 1
        if not offset:
            message = "a line without an end"
            raise BadPickle(message)
    return offset


def check_depth(data: bytes) -> None:
    """Raise `BadPickle` if the values of an inspected pickle are nested too deeply.

    Simulates the stack, the marks and the memo of an unpickler, with the depth of each value in place of the value."""
    stack: list[int] = []
    marks: list[int] = []
    memo: dict[int, int] = {}
    offset, end = 0, len(data)
    try:
        while offset < end:
            code = data[offset]
            start = offset + 1
            offset = _argument_end(data, code, start)
            if code in _LEAVES:
                stack.append(0)
            elif code == 0x94:  # MEMOIZE
                memo[len(memo)] = stack[-1]
            elif code == 0x28:  # MARK
                marks.append(len(stack))
            elif code in _GETS:
                stack.append(memo[_memo_number(code, data[start:offset])])
            elif code in _PUTS:
                memo[_memo_number(code, data[start:offset])] = stack[-1]
            elif code in _SINCE_MARK:
                values = _pop_operands(stack, len(stack) - marks.pop())
                _push(stack, 1 + max(values, default=-1), into=code in _MODIFYING)
            elif code in _OPERAND_COUNTS:
                _push(stack, 1 + max(_pop_operands(stack, _OPERAND_COUNTS[code])), into=code in _MODIFYING)
            elif code == 0x30 and marks and marks[-1] == len(stack):  # POP of a mark
                marks.pop()
            elif code == 0x30:  # POP
                stack.pop()
            elif code == 0x31:  # POP_MARK
                del stack[marks.pop() :]
            elif code == 0x32:  # DUP
                stack.append(stack[-1])
    except (IndexError, KeyError):
        return  # the unpickler will fail at this opcode


_LEAVES = frozenset(b")]}NKMJG\x88\x89\x8fFILSVcP\x97" + _COUNTED_SHORT + bytes(_COUNTED))
_GETS, _PUTS = frozenset(b"hjg"), frozenset(b"qrp")
_SINCE_MARK = frozenset(b"tld\x91ioeu\x90")
_OPERAND_COUNTS = {
    0x85: 1,
    0x86: 2,
    0x87: 3,
    ord("R"): 2,
    0x81: 2,
    0x92: 3,
    0x93: 2,
    ord("a"): 1,
    ord("s"): 2,
    ord("b"): 1,
}
_OPERAND_COUNTS[_BINPERSID] = 1
_MODIFYING = frozenset(b"asbeu\x90")  # these add the operands to the value below them on the stack


def _push(stack: list[int], depth: int, *, into: bool) -> None:
    if depth > MAX_DEPTH:
        message = f"values nested more than {MAX_DEPTH} deep"
        raise BadPickle(message)
    if into:
        stack[-1] = max(stack[-1], depth)
    else:
        stack.append(depth)


def _pop_operands(stack: list[int], count: int) -> list[int]:
    if not 0 <= count <= len(stack):
        raise IndexError(count)
    first = len(stack) - count
    operands = stack[first:]
    del stack[first:]
    return operands


def _memo_number(code: int, argument: bytes) -> int:
    return _number(argument[:-1]) if code in b"gp" else int.from_bytes(argument, "little")


_SIZES = {
    **{code: size for size, codes in _FIXED.items() for code in codes},
    _STACK_GLOBAL: 0,
    _BINPERSID: 0,
    _LONG_BINPUT: 4,
    _FRAME: 8,
}


def _argument_end(data: bytes, code: int, start: int) -> int:
    size = _SIZES.get(code)
    if size is not None:
        return start + size
    if code in _COUNTED_SHORT:
        return start + 1 + data[start]
    if code in _COUNTED:
        size = _COUNTED[code]
        return start + size + int.from_bytes(data[start : start + size], "little")
    return _after_lines(data, start, _GLOBALS.get(code, 1))
