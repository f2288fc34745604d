"""What user functions print while a task runs.

Promises: the first 256 KiB are kept, the rest is counted.
Does not know: who shows it."""

from __future__ import annotations

import io

_MOST = 256 * 1024


class Printed(io.StringIO):
    """What user functions print, up to a limit; the rest is only counted."""

    dropped = 0

    def write(self, text: str) -> int:
        """Keep what there is room for."""
        kept = text[: max(0, _MOST - self.tell())]
        self.dropped += len(text) - len(kept)
        super().write(kept)
        return len(text)

    def text(self) -> str:
        """What was kept, and how much was not."""
        kept = self.getvalue()
        return f"{kept}\n... {self.dropped} more characters were printed and dropped\n" if self.dropped else kept
