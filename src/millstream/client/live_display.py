"""Output of a notebook cell that is replaced while the cell runs.

Promises: works in every client that shows HTML; IPython is imported only inside of a notebook. At most one update is
sent in a quarter of a second, except the last.
Does not know: what is shown."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from typing import Any

_REFRESH_EVERY = 0.25  # seconds


def is_notebook() -> bool:
    """Return whether the program runs in a kernel of Jupyter."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


class LiveDisplay:
    """One output of a cell. `render` returns its current form, as HTML and as text."""

    def __init__(self, render: Callable[[], tuple[str, str]], clock: Callable[[], float] = time.monotonic) -> None:
        self._render, self._clock = render, clock
        self._handle: Any = None
        self._shown_at = 0.0

    def refresh(self) -> None:
        """Show the current form, unless it was shown a moment ago."""
        if self._handle is None or self._clock() - self._shown_at >= _REFRESH_EVERY:
            self.show()

    def show(self) -> None:
        """Show the current form."""
        html, text = self._render()
        bundle = {"text/html": html, "text/plain": text}
        self._shown_at = self._clock()
        if self._handle is None:
            display = importlib.import_module("IPython.display").display
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)
