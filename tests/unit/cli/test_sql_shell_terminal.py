"""The SQL shell in a real terminal: a process of its own behind a pseudo terminal, with jobs that run in it.

Printed lines are searched for in the raw output. Prompts and pages are searched for on an emulated screen: they are
drawn by sending changes, so the text that a user sees need not be contiguous in the raw output."""

import codecs
import contextlib
import fcntl
import os
import pty
import random
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyte
import pytest

pytest.importorskip("prompt_toolkit")

SOURCES = Path(__file__).parent.parent.parent.parent / "src"
PROGRAM = """
import sys
from millstream.client import local
from millstream.client.job_client import JobClient
from millstream.cluster import entrypoint
from millstream.testing.inline_engine import InlineEngine

def submit(graph, configuration, name, listeners=()):
    running = entrypoint.submit(graph, configuration, name, engine=InlineEngine(), listeners=listeners)
    return JobClient(local.LocalHandle(running))

local.submit = submit
from millstream.cli import main
sys.exit(main(["sql", *sys.argv[1:]]))
"""
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\x1b\][^\x07]*\x07|\r")
CTRL_C, CTRL_D, TAB, ENTER = "\x03", "\x04", "\t", "\r"
PROMPT = "millstream>"
LINES, COLUMNS = 30, 100
ALTERNATE_SCREEN = 1049
PATIENCE = 60.0


class Drawn(pyte.Screen):
    """The screen as a user sees it. A full-screen view starts on an empty screen, and so does the output after it."""

    def set_mode(self, *modes: int, **options: Any) -> None:
        super().set_mode(*modes, **options)
        self._empty_for(modes)

    def reset_mode(self, *modes: int, **options: Any) -> None:
        super().reset_mode(*modes, **options)
        self._empty_for(modes)

    def _empty_for(self, modes: tuple[int, ...]) -> None:
        if ALTERNATE_SCREEN in modes:
            self.erase_in_display(2)
            self.cursor_position()

    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.display)

    def is_prompt(self) -> bool:
        """Whether the cursor is behind an empty prompt."""
        return self.display[self.cursor.y].rstrip() == PROMPT and self.cursor.x == len(PROMPT) + 1


class Terminal:
    """A shell behind a pseudo terminal. Nothing is typed before there is something that reads it."""

    def __init__(self, *arguments: str, home: Path) -> None:
        self.home = home
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        environment = {
            **os.environ,
            "PYTHONPATH": str(SOURCES),
            "XDG_STATE_HOME": str(home),
            "TERM": "xterm",
            "PROMPT_TOOLKIT_NO_CPR": "1",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=home,
            env=environment,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)
        self._came = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._screen = Drawn(COLUMNS, LINES)
        self._drawing = pyte.Stream(self._screen)

    def send(self, text: str | bytes) -> None:
        os.write(self._ours, text if isinstance(text, bytes) else text.encode())

    def _read(self) -> None:
        text = self._decoder.decode(os.read(self._ours, 65536))
        self._came += text
        self._drawing.feed(text)

    def _until(self, reached: Callable[[], bool], wanted: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not reached():
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._ours], [], [], left)[0]:
                pytest.fail(f"no {wanted} in {self._came[-2000:]!r}, on the screen:\n{self._screen.text()}")
            try:
                self._read()
            except OSError:
                pytest.fail(f"the shell ended before {wanted}: {self._came[-2000:]!r}")

    def expect(self, pattern: str) -> str:
        """Take the output up to a pattern."""
        wanted = re.compile(pattern, re.DOTALL)
        self._until(lambda: wanted.search(ESCAPES.sub("", self._came)) is not None, repr(pattern))
        plain = ESCAPES.sub("", self._came)
        match = wanted.search(plain)
        assert match is not None
        self._came = plain[match.end() :]
        return plain[: match.end()]

    def see(self, pattern: str) -> re.Match[str]:
        """Wait until the screen shows a pattern."""
        wanted = re.compile(pattern)
        self._until(lambda: wanted.search(self._screen.text()) is not None, f"{pattern!r} on the screen")
        match = wanted.search(self._screen.text())
        assert match is not None
        return match

    def see_all(self, pattern: str, when: Callable[[list[Any]], bool]) -> list[Any]:
        """Wait until the matches of a pattern on the screen are as expected, and return them."""
        wanted = re.compile(pattern)
        self._until(lambda: when(wanted.findall(self._screen.text())), f"wanted {pattern!r} on the screen")
        return wanted.findall(self._screen.text())

    def ready(self) -> None:
        """Wait for the prompt, and drop the output before it."""
        self._until(self._screen.is_prompt, "prompt")
        self._came = ""

    def start(self, text: str, pattern: str) -> str:
        """Type a statement and wait for what it prints."""
        self.send(text + ENTER)
        return self.expect(pattern)

    def run(self, text: str, pattern: str) -> str:
        """Type a statement, and wait for what it prints and for the next prompt."""
        found = self.start(text, pattern)
        self.ready()
        return found

    def ended(self) -> int:
        """The exit code, once the shell has ended."""
        deadline = time.monotonic() + PATIENCE
        while self._process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(OSError):  # the other side is closed
                if select.select([self._ours], [], [], 0.1)[0]:
                    self._read()
        return -1 if (code := self._process.poll()) is None else code

    def runs(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        self.kill()
        os.close(self._ours)


ENDLESS = (
    "CREATE TABLE clicks (n BIGINT, who INT) WITH ('connector' = 'datagen', 'rows-per-second' = '50', "
    "'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '1000000', "
    "'fields.who.min' = '1', 'fields.who.max' = '3');"
)
RESULT_MODE = "SET 'sql-client.execution.result-mode' = '{}';"
COUNTS = "SELECT who, COUNT(*) AS clicks FROM clicks GROUP BY who;"
COUNT = r"\| +([123]) \| +(\d+) \|"


@pytest.fixture(scope="module")
def shells(tmp_path_factory):
    """The shell that tests share until one of them fails."""
    shared: list[Terminal] = []

    def shell() -> Terminal:
        if not shared or not shared[-1].runs():
            home = tmp_path_factory.mktemp("home")
            init = home / "init.sql"
            init.write_text(ENDLESS + RESULT_MODE.format("tableau"))
            shared.append(Terminal("-i", str(init), home=home))
            shared[-1].ready()
        return shared[-1]

    yield shell
    for each in shared:
        each.close()


@pytest.fixture
def terminal(shells, request):
    """A shell at its prompt, with result mode `tableau`; a new one if the last test has failed."""
    failed = request.session.testsfailed
    shell = shells()
    yield shell
    if request.session.testsfailed > failed:
        shell.kill()


def test_ctrl_c_stops_the_query_and_not_the_shell(terminal):
    terminal.start("SELECT who FROM clicks;", r"\| \+I \|")
    terminal.expect("epoch .* rows")  # progress
    terminal.send(CTRL_C)
    stopped = terminal.expect("received a total of (\\d+) row")
    assert "[ERROR]" not in stopped
    terminal.ready()
    terminal.run("SHOW JOBS;", r"collect \| CANCELED")
    terminal.run("SELECT 40 + 2 AS answer;", r"\| \+I \| +42 \|")


def test_ctrl_c_discards_the_text_and_not_the_shell(terminal):
    terminal.send("SELECT 'half a statement" + ENTER)
    terminal.see(r"half a statement\n +>")
    terminal.send(CTRL_C)
    terminal.ready()
    terminal.run("SELECT 1 + 2 AS answer;", r"\| \+I \| +3 \|")


def test_a_statement_may_have_many_lines(terminal):
    terminal.send("SELECT 20" + ENTER + "  + 3" + ENTER + "  AS answer")
    terminal.run(";", r"\| \+I \| +23 \|")


def test_an_error_shows_its_position(terminal):
    lines = terminal.run("SELECT whoo FROM clicks;", r"did you mean 'who'\?").split("\n")
    caret = next(line for line in lines if line.strip() == "^")
    place = lines[lines.index(caret) - 1]
    assert place[caret.index("^") :].startswith("whoo")


def test_tab_completes(terminal):
    terminal.send("DESCRIBE cli" + TAB)
    terminal.see("DESCRIBE clicks")
    terminal.run(";", r"who \| +INT \|")


def test_a_table_changes_while_it_is_shown(terminal):
    terminal.run(RESULT_MODE.format("table"), "statement executed")
    terminal.send(COUNTS + ENTER)
    terminal.see(r"q leaves \| rows 1-3 of 3 \| running; epoch \d+")
    first = dict(terminal.see_all(COUNT, when=lambda counts: len(counts) == 3))
    assert set(first) == {"1", "2", "3"}
    terminal.see_all(COUNT, when=lambda counts: all(first[who] != count for who, count in counts) and len(counts) == 3)
    terminal.send("q")
    left = terminal.expect(r"query stopped, received \d+ changes?").rpartition("who |")[2]
    shown = [who for who, _ in re.findall(COUNT, left)]
    assert shown  # the page that was seen last
    assert len(set(shown)) == len(shown)
    terminal.ready()
    terminal.run(RESULT_MODE.format("tableau"), "statement executed")


def test_a_changelog_can_be_shown(terminal):
    terminal.run(RESULT_MODE.format("changelog"), "statement executed")
    terminal.send(COUNTS + ENTER)
    terminal.see(r"\| -U \|")
    terminal.send(CTRL_C)
    terminal.expect(r"query stopped, received \d+ changes?")
    terminal.ready()
    terminal.run(RESULT_MODE.format("tableau"), "statement executed")


def test_what_is_typed_ahead_reaches_the_view(terminal):
    terminal.run(RESULT_MODE.format("table"), "statement executed")
    terminal.send(COUNTS + ENTER + "q")
    terminal.expect(r"query stopped, received \d+ changes?")
    terminal.ready()
    terminal.run(RESULT_MODE.format("tableau"), "statement executed")


def test_leaving_asks_about_background_jobs(terminal):
    terminal.run("CREATE TABLE nothing (who INT) WITH ('connector' = 'blackhole');", "statement executed")
    said = terminal.run("INSERT INTO nothing SELECT who FROM clicks;", "was submitted")
    job = re.search(r"job (\w{32}) was", said)[1]
    terminal.send("QUIT;" + ENTER)
    terminal.see(r"1 job will end with the shell\. Leave\? \[y/N\]")
    terminal.send("n" + ENTER)
    terminal.ready()
    terminal.run(f"STOP JOB '{job}';", "statement executed")
    terminal.run("SHOW JOBS;", rf"{job}[^\n]*CANCELED")


def test_invalid_input_never_ends_the_shell(terminal):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    letters = [code for code in range(1, 256) if chr(code) != CTRL_D]  # which leaves
    for number in range(12):
        terminal.send(bytes(chance.choices(letters, k=30)) + f"{ENTER};{ENTER}{CTRL_C}{CTRL_C}".encode())
        terminal.run(f"SELECT 1000 + {number} AS answer;", rf"\| \+I \| +{1000 + number} \|")


def test_history_outlives_the_shell_and_ctrl_d_ends_it(terminal):
    terminal.run("SELECT 7 * 6 AS answer;", r"\| \+I \| +42 \|")
    terminal.send(CTRL_D)
    assert terminal.ended() == 0
    history = terminal.home / "millstream" / "sql_history"
    assert history.stat().st_mode & 0o777 == 0o600
    assert "SELECT 7 * 6 AS answer;" in history.read_text()


def test_a_script_is_stopped_by_ctrl_c(tmp_path):
    made = Terminal("-e", f"{ENDLESS} SELECT who FROM clicks;", home=tmp_path)
    try:
        made.expect(r"\| \+I \|")
        made.send(CTRL_C)
        assert made.ended() == 130
    finally:
        made.close()
