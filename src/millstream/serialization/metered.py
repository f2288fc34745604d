"""Limits how much the calls in one pickle copy.

A pickle can refer to a large argument in its memo many times, so that few bytes take much memory.

Promises: arguments are copied at most as often as a pickler would have written them; `BadPickle` is raised before more
is copied. Pickles that a pickler writes are never refused. A pickle cannot change the limit.
Does not know: which constructors exist, or how a class is found by its name."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from millstream.serialization import pickles

CONTAINERS = (tuple, frozenset, set, list, deque, dict, bytes, bytearray, np.ndarray)
NOT_METERED = 512  # bytes; the calls in a smaller pickle cannot copy much

_FREE_COPIES = 1 << 15  # elements or bytes; for more than this a pickler writes at least one byte each, in each call
_COPYING, _CALLING = frozenset({"array", "objects", "counter"}), frozenset({"new", "call"})
_ARGUMENT_HOOKS = ("__getnewargs__", "__getnewargs_ex__", "__reduce__", "__reduce_ex__")


class MeteredBuild:
    """The function `build` for one pickle of `size` bytes. `class_named` returns the class with a name."""

    __slots__ = ("_build", "_class_named", "_left", "_not_copying")
    _build: Callable[..., Any]
    _class_named: Callable[[str], type]
    _left: int
    _not_copying: set[str]  # names of classes whose constructors do not copy their arguments

    def __init__(self, size: int, build: Callable[..., Any], class_named: Callable[[str], type]) -> None:
        object.__setattr__(self, "_build", build)
        object.__setattr__(self, "_class_named", class_named)
        object.__setattr__(self, "_left", size + _FREE_COPIES)
        object.__setattr__(self, "_not_copying", set())

    def __call__(self, kind: str, *arguments: Any) -> Any:
        """Create a value; raise `BadPickle` if the calls copy too much."""
        if kind in _COPYING:
            self._count_copies(arguments[-1:])
        elif kind in _CALLING and arguments[0] not in self._not_copying:
            if _copies_argument(self._class_named(arguments[0])):
                self._count_copies(arguments[1:])
            else:
                self._not_copying.add(arguments[0])
        return self._build(kind, *arguments)

    def _count_copies(self, copied: Iterable[Any]) -> None:
        left = self._left - sum(len(container) for container in copied if isinstance(container, CONTAINERS))
        if left < 0:
            message = "its calls copy more than the pickle has"
            raise pickles.BadPickle(message)
        object.__setattr__(self, "_left", left)

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse: a pickle must not change the limit."""
        raise AttributeError(name)


def _copies_argument(cls: type) -> bool:
    """Whether the constructor of a class copies its argument, so that a pickler writes the argument again for each
    object.

    A named tuple refers to its arguments. A class that chooses its own arguments may share them, and a pickler writes a
    shared argument once."""
    base = next((container_class for container_class in CONTAINERS if issubclass(cls, container_class)), None)
    if base is None or hasattr(cls, "_fields"):
        return False
    return all(getattr(cls, hook, None) is getattr(base, hook, None) for hook in _ARGUMENT_HOOKS)
