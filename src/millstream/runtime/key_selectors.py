"""Key selectors that have `open` or `close`: a task opens those of its operators and of its exchanges.

Promises: each selector is opened once, before the first record, with the runtime context of an operator.
Does not know: what the selectors do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from millstream.functions import Function
from millstream.runtime.checkpointed import Functions
from millstream.runtime.keys import KeySelection
from millstream.runtime.operator import OperatorContext


def key_selectors(uses: Iterable[tuple[Any, OperatorContext]]) -> list[Functions]:
    """Return the selectors that must be opened or closed.

    Args:
        uses: Operator specs and partitioners, each with the context of the operator that it belongs to.

    """
    selectors: dict[int, Functions] = {}
    for use, context in uses:
        for selector in _selectors(use):
            selectors.setdefault(id(selector), Functions(context, [selector], keyed=False))
    return list(selectors.values())


def _selectors(use: Any) -> Iterator[Function]:
    keys: Sequence[Any] = (getattr(use, "key", None), *(getattr(use, "keys", None) or ()))
    for key in keys:
        selector = getattr(key.selector, "__self__", None) if isinstance(key, KeySelection) else None
        if isinstance(selector, Function) and _is_rich(selector):
            yield selector


def _is_rich(function: Function) -> bool:
    return type(function).open is not Function.open or type(function).close is not Function.close
