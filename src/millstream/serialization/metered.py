"""A limit on what the calls of one pickle copy.

Promises: arguments that a pickle takes from its memo again and again are copied at most as often as a pickler would
write them; more is refused with `BadPickle` before it is copied. What a pickler writes for honest values is never
refused. No pickle can change the meter.
Does not know: which calls there are, or how a class is found by its name."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from millstream.serialization import pickles

CONTAINERS = (tuple, frozenset, set, list, deque, dict, bytes, bytearray, np.ndarray)
NOT_METERED = 512  # bytes: a pickle of this size cannot make calls that copy more than that

_FREE_COPIES = 1 << 15  # elements or bytes; of more, a pickler writes at least a byte for each, in each call
_COPYING, _CALLING = frozenset({"array", "objects", "counter"}), frozenset({"new", "call"})
_ARGUMENT_HOOKS = ("__getnewargs__", "__getnewargs_ex__", "__reduce__", "__reduce_ex__")


class MeteredBuild:
    """`build` for one pickle of `size` bytes. `class_named` gives the class of a call by its name."""

    __slots__ = ("_build", "_class_named", "_left", "_others")
    _build: Callable[..., Any]
    _class_named: Callable[[str], type]
    _left: int
    _others: set[str]  # classes that are not known to copy their arguments

    def __init__(self, size: int, build: Callable[..., Any], class_named: Callable[[str], type]) -> None:
        object.__setattr__(self, "_build", build)
        object.__setattr__(self, "_class_named", class_named)
        object.__setattr__(self, "_left", size + _FREE_COPIES)
        object.__setattr__(self, "_others", set())

    def __call__(self, kind: str, *arguments: Any) -> Any:
        """Build a value, unless that copies too much."""
        if kind in _COPYING:
            self._charge(arguments[-1:])
        elif kind in _CALLING and arguments[0] not in self._others:
            if _copies(self._class_named(arguments[0])):
                self._charge(arguments[1:])
            else:
                self._others.add(arguments[0])
        return self._build(kind, *arguments)

    def _charge(self, copied: Iterable[Any]) -> None:
        left = self._left - sum(len(container) for container in copied if isinstance(container, CONTAINERS))
        if left < 0:
            message = "its calls copy more than the pickle has"
            raise pickles.BadPickle(message)
        object.__setattr__(self, "_left", left)

    def __setattr__(self, name: str, value: object) -> None:
        """No pickle can change it."""
        raise AttributeError(name)


def _copies(cls: type) -> bool:
    """Whether an object of the class is a copy of its argument, which a pickler writes again for each object.

    A named tuple refers to its arguments, and a class that chooses them itself may share them: a pickler writes a
    shared argument once."""
    base = next((container_class for container_class in CONTAINERS if issubclass(cls, container_class)), None)
    if base is None or hasattr(cls, "_fields"):
        return False
    return all(getattr(cls, hook, None) is getattr(base, hook, None) for hook in _ARGUMENT_HOOKS)
