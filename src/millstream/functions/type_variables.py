"""Type variables of functions and streams.

Each has the default `Any`, so that programs which do not parametrize a class type-check as they are.

Promises: element types flow from one call to the next for type checkers; they have no effect at run time.
Does not know: `TypeInformation`, which is what the engine uses."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypeVar

IN = TypeVar("IN", contravariant=True, default=Any)
IN2 = TypeVar("IN2", contravariant=True, default=Any)
OUT = TypeVar("OUT", covariant=True, default=Any)
T = TypeVar("T", default=Any)
K = TypeVar("K", default=Any)
ACC = TypeVar("ACC", default=Any)
