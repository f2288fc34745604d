"""The base class of syntax tree nodes.

Promises: a node is frozen and knows its offset in the text; the offset is not part of equality.
Does not know: the meaning of the node."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Node:
    """A part of a statement; `at` is its offset in the text; for an operator, the offset of the operator symbol."""

    at: int = field(compare=False)
