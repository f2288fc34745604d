"""Captures the standard output of user functions while a task runs.

Promises: the first 256 KiB are kept, the rest is counted.
Does not know: who displays it."""

from __future__ import annotations

import io

_LIMIT = 256 * 1024


class CapturedOutput(io.StringIO):
    """A text stream with a limit; characters beyond it are only counted."""

    dropped = 0

    def write(self, text: str) -> int:
        """Keep the characters up to the limit."""
        kept = text[: max(0, _LIMIT - self.tell())]
        self.dropped += len(text) - len(kept)
        super().write(kept)
        return len(text)

    def text(self) -> str:
        """Return the kept text, and how many characters were dropped."""
        kept = self.getvalue()
        return f"{kept}\n... {self.dropped} more characters were printed and dropped\n" if self.dropped else kept
