"""A copy of a function shares objects of the process, and nothing that calls of the function change."""

import functools
import itertools

import numpy as np
import pyarrow as pa

from millstream.connectors.collection import CollectionSource
from millstream.engine.fresh_copy import Original
from millstream.types.factory import Types

CALLS = []


def fresh_copy(value):
    return Original(value).copy()


class Counting:
    def __init__(self):
        self.seen = []

    def __call__(self, value):
        self.seen.append(value)
        return len(self.seen)


def nested():
    seen = []

    def call(value, also=[]):  # noqa: B006
        seen.append(value)
        also.append(value)
        CALLS.append(value)
        return len(seen), len(also)

    return call


def test_fields_are_copied():
    original = Counting()
    assert [fresh_copy(original)("a"), fresh_copy(original)("a"), original("a")] == [1, 1, 1]
    partial = functools.partial(original)
    assert [fresh_copy(partial)("a"), fresh_copy(partial)("a")] == [2, 2]


def test_variables_and_default_values_of_nested_functions_are_copied():
    original = nested()
    assert fresh_copy(original)(1) == (1, 1)
    assert fresh_copy(original)(1) == (1, 1)
    assert original(1) == (1, 1)
    assert fresh_copy(original)(1) == (2, 2)


def test_globals_classes_and_module_functions_are_shared():
    CALLS.clear()
    fresh_copy(nested())("x")
    assert CALLS == ["x"]
    assert fresh_copy(Counting) is Counting
    assert fresh_copy(nested) is nested
    assert fresh_copy([functools.reduce, itertools.count]) == [functools.reduce, itertools.count]


def test_copied_functions_still_share_their_variable():
    count = 0

    def add():
        nonlocal count
        count += 1

    def get():
        return count

    copied_add, copied_get = fresh_copy((add, get))
    copied_add()
    assert (copied_get(), get()) == (1, 0)


def test_a_function_may_call_itself():
    def factorial(n):
        return 1 if n < 2 else n * factorial(n - 1)

    factorial.note = ["kept"]
    copied = fresh_copy(factorial)
    assert copied(5) == 120
    assert copied.note == ["kept"]
    assert copied.note is not factorial.note
    assert copied.__closure__[0].cell_contents is copied


def test_immutable_data_is_shared():
    table = pa.table({"a": [1]})
    source = CollectionSource([1, 2], Types.LONG())
    copied = fresh_copy({"table": table, "source": source})
    assert copied["table"] is table
    assert copied["source"] is source


def test_changes_of_one_copy_do_not_affect_the_next():
    array = np.zeros(2)
    original = Original((nested(), array, array))
    for _ in range(2):
        call, first, second = original.copy()
        assert call("a") == (1, 1)
        assert first is second
        assert first.tolist() == [0, 0]
        first[1] = 5
