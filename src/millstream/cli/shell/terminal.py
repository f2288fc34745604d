"""The interactive parts of the shell, which need prompt_toolkit: the line editor, and the live view of a running query.

Promises: Enter ends a statement that has its semicolon, and begins a new line otherwise; only Ctrl-C
(KeyboardInterrupt) and Ctrl-D on an empty line (EOFError) end the input. Leaving the live view stops its query and
nothing else, and prints the last page. A query that has ended and fits on one page closes the view.
Does not know: statements."""

from __future__ import annotations

import contextlib
import io
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.output import Output
from prompt_toolkit.output.defaults import create_output
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.styles import Style

from millstream.cli.shell.editing import Names, complete, highlight_lines
from millstream.cli.shell.jobs import summarize
from millstream.cli.shell.results import HEAD, Columns, clip
from millstream.cli.shell.screen import Screen, write
from millstream.cli.shell.statements import is_complete
from millstream.client.job_progress import Progress
from millstream.table.query_rows import QueryRows
from millstream.table.table_result import TableResult

PROMPT = "millstream> "
_STYLE = Style.from_dict(
    {
        "sql.keyword": "bold ansiblue",
        "sql.type": "ansicyan",
        "sql.function": "ansimagenta",
        "sql.string": "ansigreen",
        "sql.name": "ansiyellow",
        "sql.number": "ansicyan",
        "sql.comment": "italic ansibrightblack",
        "sql.hint": "ansibrightblack",
    }
)


class SqlLexer(Lexer):
    """Highlights SQL for prompt_toolkit."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        """Return a function from a line number to the styled tokens of the line."""
        lines = highlight_lines(document.text)

        def line(number: int) -> StyleAndTextTuples:
            if number >= len(lines):
                return []
            return [(f"class:sql.{kind}", token) for kind, token in lines[number]]

        return line


class SqlCompleter(Completer):
    """Completes SQL for prompt_toolkit."""

    def __init__(self, names: Callable[[], Names]) -> None:
        self._names = names

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Iterate over the completions at the cursor."""
        for candidate in complete(document.text_before_cursor, document.text_after_cursor, self._names()):
            yield Completion(candidate.text, start_position=-candidate.replaces, display_meta=candidate.kind)


class Prompt:
    """Reads statements from a terminal."""

    def __init__(
        self,
        names: Callable[[], Names],
        history: Path | None,
        *,
        input: Input | None = None,
        output: Output | None = None,
    ) -> None:
        self._input, self._output = input, output or create_output()
        self._session: PromptSession[str] = PromptSession(
            multiline=True,
            prompt_continuation=lambda width, _number, _soft: f"{'>':>{width - 1}} ",
            lexer=SqlLexer(),
            completer=SqlCompleter(names),
            complete_while_typing=False,
            auto_suggest=AutoSuggestFromHistory(),
            history=_open_history(history),
            key_bindings=_prompt_keys(),
            style=_STYLE,
            input=input,
            output=self._output,
        )

    def read(self) -> str:
        """Return the next text."""
        with patch_stdout(raw=True):  # the output of background jobs is printed above the prompt
            return _replace_invalid_bytes(self._session.prompt(PROMPT))

    def ask(self, question: str) -> bool:
        """Ask a yes-or-no question; Ctrl-C and Ctrl-D mean no."""
        session: PromptSession[str] = PromptSession(input=self._input, output=self._output)
        try:
            return session.prompt(f"{question} [y/N] ").strip().lower() in ("y", "yes")
        except (KeyboardInterrupt, EOFError):
            return False


def _prompt_keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def enter(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.complete_state = None
        elif is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    @keys.add("escape", "enter")
    def newline(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


def history_file(environment: Mapping[str, str]) -> Path:
    """Return the default file of the history of statements."""
    state = environment.get("XDG_STATE_HOME")
    return (Path(state) if state else Path("~/.local/state").expanduser()) / "millstream" / "sql_history"


def _open_history(path: Path | None) -> History:
    """Open the history of statements. Only its owner can read the file, because statements may contain passwords."""
    if path is None:
        return InMemoryHistory()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND, 0o600))
        path.chmod(0o600)
    except OSError:
        return InMemoryHistory()  # the shell also starts if the home directory is read-only
    return StatementHistory(str(path))


class StatementHistory(FileHistory):
    """A history file that accepts input with invalid bytes."""

    def store_string(self, string: str) -> None:
        """Append a statement to the history."""
        super().store_string(_replace_invalid_bytes(string))


def _replace_invalid_bytes(text: str) -> str:
    """Replace bytes that are not valid UTF-8, which terminals pass on as surrogates."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


_KEY_HELP = "n p g G arrows move"
_SCROLL_COLUMNS = 16
_REFRESH_SECONDS = 0.2


class LiveView:
    """Shows the result of a query on the whole terminal. A call returns when the user leaves the view."""

    def __init__(self, screen: Screen, *, input: Input | None = None, output: Output | None = None) -> None:
        self._screen, self._input, self._output = screen, input, output

    def __call__(self, result: TableResult, columns: Columns, table: QueryRows, progress: Progress) -> None:
        """Show one result."""
        output = self._output or create_output(stdout=self._screen.out)
        pager = Pager(columns, table, progress, lambda: (output.get_size().rows, output.get_size().columns))
        app = pager.application(self._input, output)
        rows = result.collect()
        problems: list[BaseException] = []

        def read() -> None:
            try:
                for row in rows:
                    table.add(row)
            except BaseException as problem:
                problems.append(problem)
                pager.has_failed = True
            pager.has_ended = True
            app.invalidate()

        reader = threading.Thread(target=read, daemon=True, name="query-reader")
        reader.start()
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):  # the output of background jobs would disturb the view
                app.run()
        finally:
            has_ended = pager.has_ended
            rows.close()
            reader.join()
        write(self._screen.out, printed.getvalue())
        if problems:
            raise problems[0]
        for line in pager.page_lines():
            self._screen.line(line)
        received = f"received {table.changes} {'change' if table.changes == 1 else 'changes'}"
        self._screen.message(f"query {'finished' if has_ended else 'stopped'}, {received}")


class Pager:
    """The page of rows that the live view shows, and its keys."""

    def __init__(
        self, columns: Columns, table: QueryRows, progress: Progress, size: Callable[[], tuple[int, int]]
    ) -> None:
        self._columns, self._table, self._progress, self._size = columns, table, progress, size
        self._top: int | None = None  # None if the page follows the last row
        self._left = 0
        self.has_ended = self.has_failed = False

    def _height(self) -> int:
        return max(1, self._size()[0] - HEAD - 2)

    def _start(self) -> int:
        last = max(0, len(self._table) - self._height())
        return last if self._top is None else min(self._top, last)

    def move(self, rows: int) -> None:
        """Scroll down by some rows, or up if negative; at the end, the page follows the last row."""
        last = max(0, len(self._table) - self._height())
        top = max(0, self._start() + rows)
        self._top = None if rows > 0 and top >= last else top

    def shift(self, columns: int) -> None:
        """Scroll to the right by some columns, or to the left if negative."""
        self._left = max(0, self._left + columns)

    def page_lines(self) -> list[str]:
        """Return the lines of the page, not clipped."""
        return self._columns.lines(self._table.page(self._start(), self._height()))

    def body(self) -> str:
        """Return the text of the page, clipped to the terminal."""
        width = self._size()[1]
        return "\n".join(clip(line, self._left, width) for line in self.page_lines())

    def bar(self) -> str:
        """Return the status bar below the page."""
        total, start = len(self._table), self._start()
        rows = f"rows {min(start + 1, total):,}-{min(start + self._height(), total):,} of {total:,}"
        state = "ended" if self.has_ended else summarize(self._progress)
        return clip(f" q leaves | {rows} | {state} | {_KEY_HELP} ", 0, self._size()[1])

    def application(self, input: Input | None, output: Output) -> Application[None]:
        """Create the full-screen application."""
        body = Window(FormattedTextControl(self.body), wrap_lines=False, always_hide_cursor=True)
        bar = Window(FormattedTextControl(self.bar), height=1, style="reverse", always_hide_cursor=True)

        def leave_when_done(app: Application[None]) -> None:
            if self.has_ended and (self.has_failed or len(self._table) <= self._height()) and not app.is_done:
                app.exit()

        return Application(
            layout=Layout(HSplit([body, bar])),
            key_bindings=self._keys(),
            full_screen=True,
            refresh_interval=_REFRESH_SECONDS,
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
        bind(("g", "home"), lambda: self.move(-len(self._table)))
        bind(("G", "end"), lambda: self.move(len(self._table) + 1))
        bind(("right", "l"), lambda: self.shift(_SCROLL_COLUMNS))
        bind(("left", "h"), lambda: self.shift(-_SCROLL_COLUMNS))
        return keys
