"""A running query on the whole terminal: its table or its changes, page by page, while they change.

Promises: leaving the view stops the query and nothing else, and the page that was seen last stays on the screen. A
query that has ended, and whose rows fit on a page, leaves by itself.
Does not know: statements; it is given rows."""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Callable

from prompt_toolkit.application import Application
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.output import Output
from prompt_toolkit.output.defaults import create_output

from millstream.cli.shell.jobs import summary
from millstream.cli.shell.pages import HEAD, Columns, cut
from millstream.cli.shell.results import Kept
from millstream.cli.shell.screen import Screen, write
from millstream.client.progress import Progress
from millstream.table.table_result import TableResult

_KEYS = "n p g G arrows move"
_STEP = 16
_REFRESH = 0.2


class LiveView:
    """Shows queries on one terminal. Call it with a result; it returns when the user leaves the view."""

    def __init__(self, screen: Screen, *, input: Input | None = None, output: Output | None = None) -> None:
        self._screen, self._input, self._output = screen, input, output

    def __call__(self, result: TableResult, columns: Columns, kept: Kept, progress: Progress) -> None:
        """Show one result."""
        output = self._output or create_output(stdout=self._screen.out)
        pager = Pager(columns, kept, progress, lambda: (output.get_size().rows, output.get_size().columns))
        app = pager.application(self._input, output)
        rows = result.collect()
        problems: list[BaseException] = []

        def read() -> None:
            try:
                for row in rows:
                    kept.add(row)
            except BaseException as problem:
                problems.append(problem)
                pager.failed = True
            pager.ended = True
            app.invalidate()

        reader = threading.Thread(target=read, daemon=True, name="query-reader")
        reader.start()
        meanwhile = io.StringIO()
        try:
            with contextlib.redirect_stdout(meanwhile):  # what background jobs print would tear the view
                app.run()
        finally:
            ended = pager.ended
            rows.close()
            reader.join()
        write(self._screen.out, meanwhile.getvalue())
        if problems:
            raise problems[0]
        for line in pager.seen():
            self._screen.line(line)
        received = f"received {kept.changes} {'change' if kept.changes == 1 else 'changes'}"
        self._screen.tell(f"query {'finished' if ended else 'stopped'}, {received}")


class Pager:
    """Which rows are on the page, and what the keys do to it."""

    def __init__(self, columns: Columns, kept: Kept, progress: Progress, size: Callable[[], tuple[int, int]]) -> None:
        self._columns, self._kept, self._progress, self._size = columns, kept, progress, size
        self._top: int | None = None  # None: follow the end
        self._left = 0
        self.ended = self.failed = False

    def _height(self) -> int:
        return max(1, self._size()[0] - HEAD - 2)

    def _start(self) -> int:
        last = max(0, len(self._kept) - self._height())
        return last if self._top is None else min(self._top, last)

    def move(self, rows: int) -> None:
        """Go some rows down, or up; at the end the page follows."""
        last = max(0, len(self._kept) - self._height())
        top = max(0, self._start() + rows)
        self._top = None if rows > 0 and top >= last else top

    def shift(self, places: int) -> None:
        """Go some places to the right, or to the left."""
        self._left = max(0, self._left + places)

    def seen(self) -> list[str]:
        """The lines of the page, whole."""
        return self._columns.lines(self._kept.page(self._start(), self._height()))

    def body(self) -> str:
        """The lines of the page, as far as they fit."""
        width = self._size()[1]
        return "\n".join(cut(line, self._left, width) for line in self.seen())

    def bar(self) -> str:
        """The line below the page."""
        total, start = len(self._kept), self._start()
        rows = f"rows {min(start + 1, total):,}-{min(start + self._height(), total):,} of {total:,}"
        state = "ended" if self.ended else summary(self._progress)
        return cut(f" q leaves | {rows} | {state} | {_KEYS} ", 0, self._size()[1])

    def application(self, input: Input | None, output: Output) -> Application[None]:
        """The page as a program that reads keys."""
        body = Window(FormattedTextControl(self.body), wrap_lines=False, always_hide_cursor=True)
        bar = Window(FormattedTextControl(self.bar), height=1, style="reverse", always_hide_cursor=True)

        def leave_when_done(app: Application[None]) -> None:
            if self.ended and (self.failed or len(self._kept) <= self._height()) and not app.is_done:
                app.exit()

        return Application(
            layout=Layout(HSplit([body, bar])),
            key_bindings=self._keys(),
            full_screen=True,
            refresh_interval=_REFRESH,
            after_render=leave_when_done,
            input=input,
            output=output,
        )

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        def bind(names: tuple[str, ...], action: Callable[[], None]) -> None:
            def pressed(_event: KeyPressEvent) -> None:
                action()

            for name in names:
                keys.add(name)(pressed)

        def leave(event: KeyPressEvent) -> None:
            event.app.exit()

        for name in ("q", "Q", "c-c", "c-d"):
            keys.add(name)(leave)
        bind(("n", "pagedown", " "), lambda: self.move(self._height()))
        bind(("p", "pageup"), lambda: self.move(-self._height()))
        bind(("down", "j"), lambda: self.move(1))
        bind(("up", "k"), lambda: self.move(-1))
        bind(("g", "home"), lambda: self.move(-len(self._kept)))
        bind(("G", "end"), lambda: self.move(len(self._kept) + 1))
        bind(("right", "l"), lambda: self.shift(_STEP))
        bind(("left", "h"), lambda: self.shift(-_STEP))
        return keys
