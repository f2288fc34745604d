"""The SQL shell without a terminal: texts, results, completion, scripts."""

import re
import sys
from argparse import Namespace
from collections import Counter
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.cli import main
from millstream.cli.shell import editing, settings
from millstream.cli.shell.editing import Names, complete
from millstream.cli.shell.results import clip
from millstream.cli.shell.screen import Screen, StatusLine
from millstream.cli.shell.shell import Leave, Shell
from millstream.cli.shell.start import interact
from millstream.cli.shell.statements import is_complete, parse_command, split_statements
from millstream.datastream import StreamExecutionEnvironment
from millstream.errors import UserError
from millstream.job.job_status import JobStatus
from millstream.sql.errors import SqlSyntaxError
from millstream.sql.syntax import parse_statement
from millstream.table import StreamTableEnvironment
from millstream.table.query_rows import Changelog, LiveTable
from millstream.types.row import Row, RowKind

PARTS = [
    *("SELECT ", "* ", "FROM ", "t ", "WHERE ", "1", "'", "`", ";", "(", ")", ",", "--", "\n", "/*", "*/", "/*+ "),
    *("CREATE TABLE ", "SHOW TABLES", "SET ", "'a' = 'b'", "BEGIN STATEMENT SET", "END", "INSERT INTO ", "€", "\0"),
    *("EXPLAIN ", "DESCRIBE ", "DROP ", "HELP", "SOURCE 'x'", "DRAW PLAN 'x' FOR ", "CASE ", "0x", '"', "\\", "$"),
    *("\udcff", "\x1b[2J", "\t"),
]
SOUP = st.lists(st.sampled_from(PARTS), max_size=25).map("".join) | st.text(max_size=40)

# ------------------------------------------------------------------------------------------------------------ texts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 1; SELECT 2", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';' ; -- a; b\nSELECT `;`;", ["SELECT ';'", "SELECT `;`"]),
        ("SELECT 'it''s; one';", ["SELECT 'it''s; one'"]),
        ("/* ; */ ;;; ", []),
        ("SELECT /*+ OPTIONS('a' = ';*/') */ 1; X", ["SELECT /*+ OPTIONS('a' = ';*/') */ 1", "X"]),
        (
            "BEGIN STATEMENT SET; INSERT INTO a SELECT 1; END; SELECT 2;",
            ["BEGIN STATEMENT SET; INSERT INTO a SELECT 1; END", "SELECT 2"],
        ),
        (
            "EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT CASE 1 WHEN 1 THEN 2 END; END; X",
            ["EXECUTE STATEMENT SET BEGIN INSERT INTO a SELECT CASE 1 WHEN 1 THEN 2 END; END", "X"],
        ),
        ("SELECT CASE WHEN a THEN b END; X", ["SELECT CASE WHEN a THEN b END", "X"]),
    ],
)
def test_a_text_is_split_at_the_semicolons_that_end_statements(text, expected):
    assert [piece.text for piece in split_statements(text)] == expected
    for piece in split_statements(text):
        assert text[piece.start : piece.start + len(piece.text)] == piece.text


@given(SOUP)
def test_any_text_can_be_split_and_only_its_end_is_incomplete(text):
    found = split_statements(text)
    at = 0
    for piece in found:
        assert piece.start >= at
        assert text[piece.start : piece.start + len(piece.text)] == piece.text
        at = piece.start + len(piece.text)
    assert all(piece.is_closed for piece in found[:-1])


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        *(("", True), ("quit", True), ("HELP", True), ("SELECT 1;", True), ("SELECT 1; -- done", True)),
        *(("SELECT 1", False), ("SELECT ';", False), ("SELECT 1; SELECT", False), ("/* ;", False)),
        *(("BEGIN STATEMENT SET; INSERT INTO a SELECT 1;", False), ("SELECT * FROM quit", False)),
    ],
)
def test_enter_ends_a_complete_statement(text, complete):
    assert is_complete(text) is complete


@given(SOUP)
def test_colours_change_no_text(text):
    assert "".join(part for _, part in editing.highlight(text)) == text
    assert "\n".join("".join(part for _, part in line) for line in editing.highlight_lines(text)) == text


def test_words_have_their_colours():
    found = dict((part, kind) for kind, part in editing.highlight("SELECT upper(a), 'x' FROM t -- end"))
    assert (found["SELECT"], found["upper"], found["'x'"], found["-- end"]) == (
        "keyword",
        "function",
        "string",
        "comment",
    )


def test_commands_are_distinguished_from_statements():
    assert parse_command("-- bye\n quit").word == "QUIT"
    assert parse_command("SOURCE 'it''s.sql'").file == "it's.sql"
    drawn = parse_command("DRAW PLAN 'p.svg' FOR SELECT 1")
    assert (drawn.file, drawn.statement) == ("p.svg", "SELECT 1")
    assert parse_command("SELECT quit FROM t") is None
    with pytest.raises(SqlSyntaxError, match="takes no arguments"):
        parse_command("QUIT now")
    with pytest.raises(SqlSyntaxError, match=r"SOURCE 'file\.sql'"):
        parse_command("SOURCE file.sql")


# ---------------------------------------------------------------------------------------------------------- results


def changes(data):
    """A changelog as a query emits it: retracted rows were added before."""
    there, made = [], []
    for what, value in data:
        if what == "insert" or not there:
            made.append(Row.of_kind(RowKind.INSERT, value, [value]))
            there.append(value)
        elif what == "update":
            old = there.pop(value % len(there))
            made += [Row.of_kind(RowKind.UPDATE_BEFORE, old, [old]), Row.of_kind(RowKind.UPDATE_AFTER, value, [value])]
            there.append(value)
        else:
            old = there.pop(value % len(there))
            made.append(Row.of_kind(RowKind.DELETE, old, [old]))
    return made, there


STEPS = st.lists(st.tuples(st.sampled_from(["insert", "update", "delete"]), st.integers(0, 5)), max_size=60)


@given(STEPS)
def test_the_live_table_is_the_result_of_the_changes(data):
    made, there = changes(data)
    table = LiveTable(1000)
    for row in made:
        table.add(row)
    assert Counter(row[0] for row in table.page(0, 1000)) == Counter(there)
    assert len(table) == len(there)
    assert table.changes == len(made)


@given(STEPS, st.integers(1, 5))
def test_the_live_table_keeps_a_bounded_number_of_rows(data, most):
    table, log = LiveTable(most), Changelog(most)
    for row in changes(data)[0]:
        table.add(row)
        log.add(row)
        assert len(table) == len(table.page(0, 1000)) <= most
        assert len(log) <= most


def test_an_updated_row_stays_in_its_place():
    table = LiveTable(10)
    for value in (1, 2, 3):
        table.add(Row(value))
    table.add(Row.of_kind(RowKind.UPDATE_BEFORE, 2))
    table.add(Row.of_kind(RowKind.UPDATE_AFTER, 20))
    assert [row[0] for row in table.page(0, 10)] == [1, 20, 3]


def test_a_page_clips_lines_by_columns_and_not_by_characters():
    assert clip("abcdef", 2, 3) == "cde"
    assert clip("日本語", 0, 5) == "日本"


class Terminal(StringIO):
    def isatty(self):
        return True


def test_the_status_line_follows_complete_lines_and_is_removed():
    terminal = Terminal()
    with StatusLine(terminal, terminal) as status:
        status.show("epoch 1")
        status.write("row 1")
        status.show("epoch 2\x1b[2J")
        status.write("row 2")
    status.show("late")
    seen = [part.split("\r\x1b[2K")[-1] for part in terminal.getvalue().split("\n")]
    assert seen[:2] == ["row 1", "row 2"]
    assert seen[2] == ""
    assert "\x1b[2J" not in terminal.getvalue()


def test_no_status_line_is_written_to_a_file():
    out, bar = StringIO(), StringIO()
    with StatusLine(out, bar) as status:
        status.show("epoch 1")
        status.write("row 1")
    assert (out.getvalue(), bar.getvalue()) == ("row 1\n", "")


# ------------------------------------------------------------------------------------------------------- completion

NAMES = Names(
    {"orders": ["id", "item", "group"], "users": ["name"], "db.other": ["x"]},
    ["UPPER", "SUM"],
    ["sql-client.verbose", "table.dml-sync"],
    ["datagen", "kafka"],
)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("SEL", "", "SELECT"),
        ("sel", "", "select"),
        ("qu", "", "quit"),
        ("SELECT * FROM or", "", "orders"),
        ("SELECT i", " FROM orders", "item"),
        ("SELECT gro", " FROM orders", "`group`"),
        ("SELECT o.it", " FROM orders AS o", "item"),
        ("SELECT UPP", "", "UPPER("),
        ("SELECT 1; SET 'sql-cl", "", "'sql-client.verbose'"),
        ("SET table", "", "'table.dml-sync'"),
        ("CREATE TABLE t (a INT) WITH ('connector' = 'ka", "", "'kafka'"),
        ("SELECT * FROM db.o", "", "other"),
        ("DESCRIBE us", "", "users"),
    ],
)
def test_valid_continuations_are_offered(before, after, expected):
    assert expected in [each.text for each in complete(before, after, NAMES)]


def test_columns_of_referenced_tables_are_offered():
    offered = [each.text for each in complete("SELECT n", " FROM orders", NAMES) if each.kind == "column"]
    assert "name" not in offered


@given(SOUP, SOUP)
def test_every_text_can_be_completed(before, after):
    for each in complete(before, after, NAMES):
        assert 0 <= each.replaces <= len(before)


def test_every_keyword_of_the_grammar_is_known():
    from millstream.sql.syntax import statements

    unknown = set(statements.STATEMENTS) - editing.KEYWORDS - {"REMOVE", "CALL"}
    assert not unknown


# ---------------------------------------------------------------------------------------------------------- options


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("sql-client.execution.result-mode", "tabel", "one of table, changelog, tableau"),
        ("sql-client.execution.max-table-result.rows", "0", "greater than 0"),
        ("sql-client.execution.resultmode", "table", "did you mean 'sql-client.execution.result-mode'"),
        ("sql-client.verbose", "perhaps", "sql-client.verbose"),
    ],
)
def test_options_of_the_shell_are_checked_when_they_are_set(key, value, said):
    with pytest.raises(UserError) as caught:
        settings.check(key, value)
    assert said in str(caught.value)


def test_options_in_other_spellings_and_without_effect():
    assert settings.check("sql-client.execution.result-mode", "TABLEAU") is None
    assert "no effect" in settings.check("sql-client.display.color-schema", "default")
    assert settings.check("table.local-time-zone", "anything") is None


# ---------------------------------------------------------------------------------------------------------- scripts


@pytest.fixture
def sql(inline_engine, capsys):
    def run(*arguments):
        code = main(["sql", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


ORDERS = "CREATE TEMPORARY VIEW orders AS SELECT * FROM (VALUES (1, 'pear'), (2, 'fig')) AS o (id, item);"


def test_a_script_writes_only_results_to_standard_output(sql):
    code, out, err = sql("-e", f"{ORDERS} SELECT id FROM orders WHERE item = 'fig';")
    assert code == 0
    assert out.splitlines() == [
        "+----+-------------+",
        "| op |          id |",
        "+----+-------------+",
        "| +I |           2 |",
        "+----+-------------+",
        "1 row in set",
    ]
    assert err == "[INFO] statement executed\n"


def test_the_first_statement_that_fails_ends_a_script_and_is_named(sql, tmp_path):
    script = tmp_path / "jobs.sql"
    script.write_text(f"{ORDERS}\n\nSELECT item,\n       amuont FROM orders;\nSELECT 'never';\n")
    code, out, err = sql("-f", str(script))
    assert code == 1
    assert "never" not in out
    assert err.splitlines()[1:] == [
        f"[ERROR] statement 2 of {script} (line 3) failed: there is no column 'amuont' (line 4, column 8)",
        "         amuont FROM orders;",
        "         ^",
        "  hint: there are: id, item",
    ]


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("SELECT 1; SELECT 2;\n  SELEC 3;", 2, "SELEC 3"),
        ("SELECT 'a;b' FROM\nnowhere;", 2, "nowhere"),
        ("-- a comment\nSHOW TABLE;", 2, "TABLE"),
        ('SELECT 1;\nSELECT "x";', 2, '"x"'),
    ],
)
def test_the_caret_is_below_the_position_in_the_script(sql, text, line, word):
    code, _, err = sql("-e", text)
    assert code == 1
    lines = err.splitlines()
    shown = next(number for number, each in enumerate(lines) if each.strip() == "^")
    assert lines[shown - 1][lines[shown].index("^") :].startswith(word)
    assert lines[shown - 1].strip() == text.splitlines()[line - 1].strip()
    assert f"(line {line}, " in err


def test_a_job_that_fails_fails_the_script(sql):
    table = "CREATE TABLE p (a INT) WITH ('connector' = 'print');"
    code, _, err = sql("-e", f"{table}\nINSERT INTO p SELECT 1 / (a - 1) FROM (VALUES (1)) AS v (a);")
    assert code == 1
    assert "statement 2 of -e (line 2) failed" in err
    assert "zero" in err.lower()


def test_a_script_waits_for_its_jobs(sql, tmp_path):
    path = tmp_path / "out"
    made = f"CREATE TABLE f (a INT) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv');"
    code, _, err = sql("-e", f"{made} INSERT INTO f VALUES (7);")
    assert code == 0, err
    assert [file.read_text().strip() for file in path.rglob("*") if file.is_file() and file.name[0] not in "._"] == [
        "7"
    ]


def test_statements_of_init_files_come_first_and_options_are_set(sql, tmp_path):
    init = tmp_path / "init.sql"
    init.write_text(ORDERS)
    mode = "sql-client.execution.result-mode=table"
    code, out, _ = sql("-i", str(init), "-D", mode, "-e", "SELECT item FROM orders GROUP BY item; SET")
    assert code == 0
    assert "| op |" not in out
    assert "2 rows in set" in out
    assert re.search(r"result-mode \| +table \|", out)


def test_invalid_arguments_are_refused_before_anything_runs(sql, tmp_path):
    init = tmp_path / "init.sql"
    init.write_text("SELEC")
    assert sql("-i", str(init), "-e", "SELECT 1")[0] == 1
    code, _, err = sql("-f", str(tmp_path / "missing.sql"))
    assert (code, "missing.sql" in err) == (1, True)
    code, _, err = sql("-D", "sql-client.verbos=true", "-e", "SELECT 1")
    assert (code, "did you mean 'sql-client.verbose'" in err) == (1, True)


def test_files_are_sourced_and_plans_are_drawn(sql, tmp_path):
    inner = tmp_path / "inner.sql"
    inner.write_text(ORDERS)
    picture, chart = tmp_path / "plan.svg", tmp_path / "plan.mmd"
    script = f"SOURCE '{inner}'; DRAW PLAN '{picture}' FOR SELECT item, COUNT(*) FROM orders GROUP BY item;"
    code, _, err = sql("-e", f"{script} DRAW PLAN '{chart}' FOR SELECT * FROM orders")
    assert code == 0, err
    assert picture.read_text().startswith("<svg")
    assert "GroupAggregate" in picture.read_text()
    assert chart.read_text().startswith("flowchart")
    code, _, err = sql("-e", "DRAW PLAN 'x.svg' FOR SELECT * FROM nowhere")
    assert "(line 1, column 37)" in err
    inner.write_text(f"SOURCE '{inner}'")
    code, _, err = sql("-e", f"SOURCE '{inner}'")
    assert (code, "nested" in err) == (1, True)


def test_a_verbose_error_has_its_traceback(sql):
    assert "Traceback" in sql("-e", "SET 'sql-client.verbose' = 'true'; SELECT x FROM y")[2]
    assert "Traceback" not in sql("-e", "SELECT x FROM y")[2]


def test_values_cannot_move_the_cursor(sql):
    out = sql("-e", "SELECT U&'a\\001b[2J'")[1]
    assert "\x1b" not in out
    assert "\\x1b[2J" in out


# ------------------------------------------------------------------------------------------------- whatever is typed


class Session:
    """A shell with a simulated user, without a terminal."""

    def __init__(self):
        env = StreamExecutionEnvironment.get_execution_environment()
        self.out = TextIOWrapper(BytesIO(), encoding="ascii")  # a terminal with few capabilities
        tables = StreamTableEnvironment.create(env)
        self.shell = Shell(env, tables, Screen(interactive=True, out=self.out, err=self.out))

    def said(self):
        """The output since the last call."""
        self.out.seek(0)
        text = self.out.read()
        self.out.seek(0)
        self.out.truncate()
        return text

    def typed(self, text):
        self.said()
        try:
            self.shell.handle(text)
        except Leave:
            return "left"
        return self.said()


@pytest.mark.usefixtures("inline_engine")
def test_the_shell_works_after_any_input(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # plans are drawn into files
    session = Session()

    @given(SOUP)
    def check(text):
        assert "\x1b" not in session.typed(text)
        assert "there is no table 'nowhere'" in session.typed("SELECT * FROM nowhere;")

    check()
    assert "1 row in set" in session.typed("SELECT 1;")


@pytest.mark.usefixtures("inline_engine")
def test_only_quit_and_exit_end_the_shell():
    session = Session()
    assert session.typed("quit") == "left"
    assert session.typed("SELECT 1; EXIT; SELECT 2;") == "left"
    assert "hint: did you mean 'SELECT'" in session.typed("SELEKT 1;")
    assert "STOP JOB" in session.typed("HELP")


@pytest.mark.usefixtures("inline_engine")
def test_statements_after_a_failed_one_are_not_run():
    session = Session()
    session.typed("CREATE TABLE a (x INT); SELEC 1; CREATE TABLE b (x INT);")
    shown = session.typed("SHOW TABLES;")
    assert "| " + "a" in shown.replace("  ", " ") or " a |" in shown
    assert " b |" not in shown


@pytest.mark.usefixtures("inline_engine")
def test_jobs_are_listed_and_their_end_is_reported():
    session = Session()
    session.typed("CREATE TABLE s (x INT) WITH ('connector' = 'blackhole');")
    said = session.typed("INSERT INTO s VALUES (1);")
    job = re.search(r"job (\w{32}) was submitted", said)[1]
    session.shell.jobs._jobs[0].client.wait(60)
    assert re.search(rf"{job} .*FINISHED", session.typed("SHOW JOBS;"))
    session.shell.report_ended_jobs()
    assert f"job {job} is finished" in session.said()
    assert session.shell.jobs.describe_running() is None


def test_the_history_file_is_private(tmp_path):
    prompt = pytest.importorskip("millstream.cli.shell.terminal")
    path = prompt.history_file({"XDG_STATE_HOME": str(tmp_path)})
    prompt._open_history(path).append_string("SELECT 1;")
    assert Path(path).stat().st_mode & 0o777 == 0o600
    assert "SELECT 1;" in path.read_text()


@pytest.mark.usefixtures("inline_engine")
def test_the_statements_of_the_tour_run():
    page = (Path(__file__).parent.parent.parent.parent / "docs" / "learn" / "sql-tour.md").read_text(encoding="utf-8")
    tables = StreamTableEnvironment.create(StreamExecutionEnvironment.get_execution_environment())
    for block in re.findall(r"^```sql\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        for piece in split_statements(block):
            if piece.text.startswith("CREATE"):
                tables.execute_sql(piece.text)
            elif piece.text.startswith(("SELECT", "INSERT")):
                assert "== Optimized Execution Plan ==" in tables.explain_sql(piece.text)
            else:
                parse_statement(piece.text)
    assert tables.list_tables() == ["clicks", "kafka_clicks", "per_page", "per_second"]


def test_without_its_package_the_shell_says_what_to_install(monkeypatch):
    from millstream.cli.shell import start

    monkeypatch.delitem(sys.modules, "millstream.cli.shell.terminal", raising=False)
    monkeypatch.setitem(sys.modules, "prompt_toolkit", None)
    env = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(start.ShellNotInstalled, match="prompt_toolkit"):
        start._interactive(Namespace(init=[]), env, StreamTableEnvironment.create(env))


class Gone(StringIO):
    """A pipe that its reader has closed."""

    def write(self, text):
        raise BrokenPipeError


@pytest.mark.usefixtures("inline_engine")
def test_a_closed_output_ends_the_script():
    env = StreamExecutionEnvironment.get_execution_environment()
    told = StringIO()
    shell = Shell(env, StreamTableEnvironment.create(env), Screen(interactive=False, out=Gone(), err=told))
    with pytest.raises(BrokenPipeError):
        shell.run_script("SELECT 1; SELECT 2;", "-e")
    assert told.getvalue() == ""


@pytest.mark.usefixtures("inline_engine")
def test_ctrl_c_at_any_time_cancels_the_query_of_the_statement():
    env = StreamExecutionEnvironment.get_execution_environment()
    found = []

    def view(result, *_):
        found.append(result)
        raise KeyboardInterrupt  # before anything has begun to read the rows

    out = StringIO()
    shell = Shell(env, StreamTableEnvironment.create(env), Screen(interactive=True, out=out), view)
    shell.handle("CREATE TABLE numbers (n INT) WITH ('connector' = 'datagen', 'rows-per-second' = '0');")
    shell.handle("SET 'sql-client.execution.result-mode' = 'table'; SELECT n FROM numbers;")
    assert "stopped" in out.getvalue()
    assert found[0].get_job_client().get_job_status().result() is JobStatus.CANCELED


class Typed:
    """Lines that a user types; None is Ctrl-C."""

    def __init__(self, *texts):
        self._texts = list(texts)

    def read(self):
        if not self._texts:
            raise EOFError
        text = self._texts.pop(0)
        if text is None:
            raise KeyboardInterrupt
        return text


@pytest.mark.usefixtures("inline_engine")
def test_ctrl_c_at_any_time_does_not_end_the_shell(monkeypatch):
    session = Session()
    report_ended, pressed = session.shell.report_ended_jobs, iter([True, False, True, True])

    def interrupted():
        if next(pressed, False):
            raise KeyboardInterrupt
        report_ended()

    monkeypatch.setattr(session.shell, "report_ended_jobs", interrupted)
    interact(session.shell, Typed(None, "SELECT 40 + 2 AS answer;"), lambda: None)
    assert "42" in session.said()
