"""The SQL shell in a real terminal: a process of its own behind a pseudo terminal, with jobs that run in it."""

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
from pathlib import Path

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
PATIENCE = 30.0


class Terminal:
    """A shell behind a pseudo terminal of 30 lines and 100 columns."""

    def __init__(self, *arguments: str, home: Path) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
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
        self.seen = ""

    def send(self, text: str | bytes) -> None:
        os.write(self._ours, text if isinstance(text, bytes) else text.encode())

    def expect(self, pattern: str) -> str:
        """What came up to a pattern; it is gone then."""
        deadline = time.monotonic() + PATIENCE
        while (match := re.search(pattern, ESCAPES.sub("", self.seen), re.DOTALL)) is None:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._ours], [], [], left)[0]:
                pytest.fail(f"no {pattern!r} in {self.seen[-2000:]!r}")
            try:
                self.seen += os.read(self._ours, 65536).decode(errors="replace")
            except OSError:
                pytest.fail(f"the shell ended before {pattern!r}: {self.seen[-2000:]!r}")
        plain = ESCAPES.sub("", self.seen)
        self.seen = plain[match.end() :]
        return plain[: match.end()]

    def start(self, text: str, pattern: str) -> str:
        """Type a statement and wait for what it brings."""
        self.send(text + ENTER)
        return self.expect(pattern)

    def run(self, text: str, pattern: str) -> str:
        """Type a statement, and wait for what it brings and for the next prompt."""
        found = self.start(text, pattern)
        self.expect("millstream>")
        return found

    def ended(self) -> int:
        """The exit code, once the shell has ended."""
        deadline = time.monotonic() + PATIENCE
        while self._process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(OSError):  # the other side is closed
                if select.select([self._ours], [], [], 0.1)[0]:
                    self.seen += os.read(self._ours, 65536).decode(errors="replace")
        return -1 if (code := self._process.poll()) is None else code

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._ours)


ENDLESS = (
    "CREATE TABLE clicks (n BIGINT, who INT) WITH ('connector' = 'datagen', 'rows-per-second' = '50', "
    "'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '1000000', "
    "'fields.who.min' = '1', 'fields.who.max' = '3');"
)
TABLEAU = "SET 'sql-client.execution.result-mode' = 'tableau';"


@pytest.fixture(scope="module")
def terminal(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    init = home / "init.sql"
    init.write_text(ENDLESS)
    made = Terminal("-i", str(init), home=home)
    try:
        made.expect("millstream>")
        yield made
    finally:
        made.close()


def test_ctrl_c_stops_the_query_and_not_the_shell(terminal):
    terminal.run(TABLEAU, "done")
    terminal.start("SELECT who FROM clicks;", r"\| \+I \|")
    terminal.expect("epoch .* rows")  # progress
    terminal.send(CTRL_C)
    stopped = terminal.expect("received a total of (\\d+) row")
    assert "[ERROR]" not in stopped
    terminal.expect("millstream>")
    terminal.run("SHOW JOBS;", r"collect \| CANCELED")
    terminal.run("SELECT 40 + 2 AS answer;", r"\| \+I \| +42 \|")


def test_ctrl_c_gives_up_the_text_and_not_the_shell(terminal):
    terminal.send("SELECT 'half a statement" + ENTER)
    terminal.expect("statement\n +>")
    terminal.send(CTRL_C)
    terminal.expect("millstream>$")
    terminal.run("SELECT 1 + 2 AS answer;", r"\| \+I \| +3 \|")


def test_a_statement_may_have_many_lines(terminal):
    terminal.send("SELECT 20" + ENTER + "  + 3" + ENTER + "  AS answer")
    terminal.run(";", r"\| \+I \| +23 \|")


def test_an_error_shows_its_place(terminal):
    lines = terminal.run("SELECT whoo FROM clicks;", r"did you mean 'who'\?").split("\n")
    caret = next(line for line in lines if line.strip() == "^")
    place = lines[lines.index(caret) - 1]
    assert place[caret.index("^") :].startswith("whoo")


def test_tab_completes(terminal):
    terminal.send("DESCRIBE cli" + TAB)
    terminal.expect("cks")
    terminal.run(";", r"who \| +INT \|")


def test_a_table_changes_while_it_is_looked_at(terminal):
    terminal.run("SET 'sql-client.execution.result-mode' = 'table';", "done")
    terminal.start("SELECT who, COUNT(*) AS clicks FROM clicks GROUP BY who;", r"q leaves .* epoch")
    for _ in range(3):
        terminal.expect(r"[1-9]\d*")  # drawn again: only what has changed
    terminal.send("q")
    left = terminal.expect(r"query stopped, received \d+ changes").rpartition("who |")[2]
    shown = re.findall(r"\| +([123]) \| +\d+ \|", left)
    assert shown
    assert len(set(shown)) == len(shown)
    terminal.expect("millstream>")


def test_changes_can_be_looked_at(terminal):
    terminal.run("SET 'sql-client.execution.result-mode' = 'changelog';", "done")
    terminal.start("SELECT who, COUNT(*) AS clicks FROM clicks GROUP BY who;", r"\| -U \|")
    terminal.send(CTRL_C)
    terminal.expect(r"query stopped, received \d+ changes")
    terminal.expect("millstream>")
    terminal.run(TABLEAU, "done")


def test_background_jobs_are_asked_about_before_they_end(terminal):
    terminal.run("CREATE TABLE nothing (who INT) WITH ('connector' = 'blackhole');", "done")
    said = terminal.run("INSERT INTO nothing SELECT who FROM clicks;", "was submitted")
    job = re.search(r"job (\w{32}) was", said)[1]
    terminal.start("QUIT;", r"1 job will end with the shell\. Leave\? \[y/N\]")
    terminal.run("n", "\n")
    terminal.run(f"STOP JOB '{job}';", "done")
    terminal.run("SHOW JOBS;", rf"{job}[^\n]*CANCELED")


def test_garbage_never_kills_the_shell(terminal):
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    letters = [code for code in range(1, 256) if chr(code) != CTRL_D]  # which leaves
    for number in range(12):
        terminal.send(bytes(chance.choices(letters, k=30)) + f"{ENTER};{ENTER}{CTRL_C}{CTRL_C}".encode())
        terminal.run(f"SELECT 1000 + {number} AS answer;", rf"\| \+I \| +{1000 + number} \|")


def test_history_outlives_the_shell_and_ctrl_d_leaves(terminal):
    terminal.send(CTRL_D)
    assert terminal.ended() == 0
    home = Path(terminal._process.args[-1]).parent
    history = home / "millstream" / "sql_history"
    assert history.stat().st_mode & 0o777 == 0o600
    assert "SELECT 40 + 2 AS answer;" in history.read_text()


def test_a_script_is_stopped_by_ctrl_c(tmp_path):
    made = Terminal("-e", f"{ENDLESS} SELECT who FROM clicks;", home=tmp_path)
    try:
        made.expect(r"\| \+I \|")
        made.send(CTRL_C)
        assert made.ended() == 130
    finally:
        made.close()
