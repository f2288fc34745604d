"""Lines read from a person: history, completion, colours, several lines at once.

Promises: Enter ends a statement that has its semicolon and begins a new line in any other; nothing a person types
raises anything but KeyboardInterrupt (Ctrl-C) and EOFError (Ctrl-D on an empty line).
Does not know: what is done with the text."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.output import Output
from prompt_toolkit.output.defaults import create_output
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.styles import Style

from millstream.cli.shell import highlighting
from millstream.cli.shell.completion import Names, candidates
from millstream.cli.shell.script import is_complete

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
    """Colours for SQL."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        """The coloured parts of each line."""
        found = highlighting.lines(document.text)

        def line(number: int) -> StyleAndTextTuples:
            if number >= len(found):
                return []
            return [(f"class:sql.{kind}", part) for kind, part in found[number]]

        return line


class SqlCompleter(Completer):
    """Candidates for the word at the cursor."""

    def __init__(self, names: Callable[[], Names]) -> None:
        self._names = names

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """What may come next."""
        for each in candidates(document.text_before_cursor, document.text_after_cursor, self._names()):
            yield Completion(each.text, start_position=-each.replaces, display_meta=each.kind)


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
            history=_history(history),
            key_bindings=_keys(),
            style=_STYLE,
            input=input,
            output=self._output,
        )

    def read(self) -> str:
        """The next text."""
        with patch_stdout(raw=True):  # what background jobs print goes above the prompt
            return valid(self._session.prompt(PROMPT))

    def ask(self, question: str) -> bool:
        """A question with yes or no; Ctrl-C and Ctrl-D are no."""
        session: PromptSession[str] = PromptSession(input=self._input, output=self._output)
        try:
            return session.prompt(f"{question} [y/N] ").strip().lower() in ("y", "yes")
        except (KeyboardInterrupt, EOFError):
            return False


def _keys() -> KeyBindings:
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
    """Where statements are remembered unless the user says otherwise."""
    state = environment.get("XDG_STATE_HOME")
    return (Path(state) if state else Path("~/.local/state").expanduser()) / "millstream" / "sql_history"


def _history(path: Path | None) -> History:
    """The statements of earlier sessions, readable by their writer only: they may hold passwords."""
    if path is None:
        return InMemoryHistory()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND, 0o600))
        path.chmod(0o600)
    except OSError:
        return InMemoryHistory()  # a home that cannot be written to is no reason not to start
    return StatementHistory(str(path))


class StatementHistory(FileHistory):
    """Statements in a file, whatever bytes were typed."""

    def store_string(self, string: str) -> None:
        """Remember a statement."""
        super().store_string(valid(string))


def valid(text: str) -> str:
    """What was typed, with a mark in place of bytes that are no text."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
