"""URLs, placeholders and names, as they are translated before a database sees them."""

from __future__ import annotations

import pickle

import pytest

from millstream.common import Row, Types
from millstream.connector.sink import WriterContext
from millstream.connector.staged import NotStaged
from millstream.connectors.jdbc.commit_records import Gid
from millstream.connectors.jdbc.options import InvalidJdbcOption, JdbcConnectionOptions
from millstream.connectors.jdbc.statements import quote_table, statement
from millstream.connectors.jdbc.targets import StatementTarget
from millstream.connectors.jdbc.types import pg_type
from millstream.connectors.jdbc.values import WrongWidth, parameters
from millstream.datastream.connectors.jdbc import JdbcSink
from millstream.errors import UserError


@pytest.mark.parametrize(
    ("url", "user", "password", "conninfo"),
    [
        ("jdbc:postgresql://h:5/d?user=u", None, None, "postgresql://u@h:5/d"),
        ("jdbc:postgresql://h:5/d", "a b", "p@ss/", "postgresql://a%20b:p%40ss%2F@h:5/d"),
        ("postgresql://u:p@h/d?sslmode=require", None, None, "postgresql://u:p@h/d?sslmode=require"),
        (
            "jdbc:postgresql://h/d?ssl=true&ApplicationName=x",
            None,
            None,
            "postgresql://h/d?sslmode=require&application_name=x",
        ),
        ("jdbc:postgresql://h/d?currentSchema=s", "u", None, "postgresql://u@h/d?options=-csearch_path%3Ds"),
    ],
)
def test_a_jdbc_url_is_converted_for_libpq(url, user, password, conninfo):
    options = JdbcConnectionOptions(url, None, user, password)
    assert options.conninfo() == conninfo
    assert pickle.loads(pickle.dumps(options)) == options
    assert password is None or password not in repr(options)
    assert "secret" not in repr(JdbcConnectionOptions("postgresql://u:secret@h/d?password=secret"))


@pytest.mark.parametrize("url", ["jdbc:oracle://u:secret@h/d", "h:5432/d", "jdbc:derby:memory"])
def test_another_database_is_refused_without_naming_the_password(url):
    with pytest.raises(InvalidJdbcOption, match="not the URL of a PostgreSQL") as refusal:
        JdbcConnectionOptions(url)
    assert "secret" not in str(refusal.value)


def test_only_question_marks_outside_quotes_are_placeholders():
    sql = """UPDATE t SET a = ?, b = '?%', "c?" = $$?$$ /* ? */ WHERE d % 2 = ? -- ?"""
    made = statement(sql)
    assert made.placeholders == 2
    assert made.sql == """UPDATE t SET a = %s, b = '?%%', "c?" = $$?$$ /* ? */ WHERE d %% 2 = %s -- ?"""
    assert made.copy is None


@pytest.mark.parametrize(
    ("sql", "copied"),
    [
        ("insert into t (a, b) values (?, ?)", "COPY t (a, b) FROM STDIN"),
        ('INSERT INTO s."T" ("A b") VALUES (?);', 'COPY s."T" ("A b") FROM STDIN'),
        ("insert into t values (?, ?)", None),
        ("insert into t (a, b) values (?, 1)", None),
        ("insert into t (a) values (?) on conflict do nothing", None),
        ("insert into t (a, b) values (?)", None),
    ],
)
def test_a_plain_insert_is_copied(sql, copied):
    assert statement(sql).copy == copied


def test_there_must_be_as_many_placeholders_as_fields():
    with pytest.raises(InvalidJdbcOption, match="2 placeholders, the type has 1 fields"):
        StatementTarget("insert into t values (?, ?)", 1)
    with pytest.raises(WrongWidth, match="has 1 fields, the statement has 2"):
        parameters([Row(1)], 2)
    with pytest.raises(InvalidJdbcOption, match="statement or a table"):
        JdbcSink.builder().build_at_least_once(JdbcConnectionOptions("postgresql://h/d"))


@pytest.mark.parametrize("name", ["a;b", "a.b.c", "", 'a" b', "a b"])
def test_an_invalid_name_is_refused(name):
    with pytest.raises(UserError, match="is not the name of a table"):
        quote_table(name)


def test_names_are_quoted():
    assert quote_table("T") == '"t"'
    assert quote_table('"My ""x""".t') == '"My ""x"""."t"'


def test_output_is_identified_by_its_name():
    gid = Gid.of(WriterContext("job:1", "sink", 3, 4, 17, "2-5.9", 0))
    assert Gid.parse(str(gid)) == gid
    assert (gid.generation, gid.epoch, gid.subtask) == (2, 17, 3)
    assert len(str(Gid.of(WriterContext("j" * 300, "s" * 300, 1, 1, 10**9, "0-" + "a" * 300, 0)))) <= 200
    for text in ("millstream:a:b:c:1:x", "other:a:b:1:1:x", "", None, {"gid": 1}):
        with pytest.raises(NotStaged):
            Gid.parse(text)


@pytest.mark.parametrize(
    ("oid", "text", "value"),
    [
        (1007, "{1,NULL,3}", [1, None, 3]),
        (1009, r'{a,"b,\"c\\",NULL,"NULL",""}', ["a", 'b,"c\\', None, "NULL", ""]),
        (1007, "{{1,2},{3,4}}", [[1, 2], [3, 4]]),
        (1007, "[0:1]={5,6}", [5, 6]),
        (1009, "{}", []),
        (17, r"\x00ff", b"\0\xff"),
        (16, "t", True),
    ],
)
def test_the_text_of_a_value_is_parsed(oid, text, value):
    assert pg_type(oid).value(text) == value


def test_a_value_that_cannot_be_represented_is_named():
    with pytest.raises(UserError, match="'infinity' of type timestamp cannot be read"):
        pg_type(1114).value("infinity")
    assert pg_type(1186).type_info == Types.STRING()
