"""Statements of a session: results, pages, changelogs, errors, jobs, cancellation."""

from __future__ import annotations

from typing import Any

import pytest
from gateway_client import GatewayClient

ENDLESS = "CREATE TABLE endless (n INT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000')"


def test_statements_without_rows_answer_ok(client: GatewayClient) -> None:
    (page, end) = client.pages(client.submit("CREATE TABLE t (n INT) WITH ('connector' = 'blackhole');"))
    assert (page["resultKind"], page["isQueryResult"]) == ("SUCCESS", False)
    assert page["results"]["columns"][0]["name"] == "result"
    assert page["results"]["data"] == [{"kind": "INSERT", "fields": ["OK"]}]
    assert (end["resultType"], end["results"]["data"]) == ("EOS", [])
    assert client.execute("SHOW TABLES") == [["t"]]


def test_a_changelog(client: GatewayClient) -> None:
    pages = list(client.pages(client.submit("SELECT k, SUM(n) FROM (VALUES ('a', 1), ('a', 2)) t(k, n) GROUP BY k")))
    assert pages[0]["isQueryResult"]
    assert len(pages[0]["jobID"]) == 32
    rows = [(row["kind"], *row["fields"]) for page in pages for row in page["results"]["data"]]
    assert rows == [("INSERT", "a", 1), ("UPDATE_BEFORE", "a", 1), ("UPDATE_AFTER", "a", 3)]


def test_values_and_types(client: GatewayClient) -> None:
    query = """SELECT TRUE, CAST(1.50 AS DECIMAL(5, 2)), CAST('12345678901234567890.5' AS DECIMAL(30, 1)),
        TIMESTAMP '2020-01-02 03:04:05.120', TO_TIMESTAMP_LTZ(1500, 3), TIME '01:02:03', X'00ff', ARRAY[1, NULL],
        MAP['a', 1], ROW(1, 'x'), INTERVAL '2' HOUR, INTERVAL '14' MONTH, CAST(NULL AS STRING), CAST('NaN' AS DOUBLE)"""
    client.execute("SET 'table.local-time-zone' = 'Europe/Berlin'")
    pages = list(client.pages(client.submit(query)))
    types = [column["logicalType"] for column in pages[0]["results"]["columns"]]
    assert types[1] == {"type": "DECIMAL", "nullable": False, "precision": 5, "scale": 2}
    assert types[4]["type"] == "TIMESTAMP_WITH_LOCAL_TIME_ZONE"
    assert types[7]["elementType"] == {"type": "INTEGER", "nullable": True}
    assert (types[8]["keyType"]["type"], types[8]["valueType"]["type"]) == ("CHAR", "INTEGER")
    assert [field["name"] for field in types[9]["fields"]] == ["EXPR$0", "EXPR$1"]
    assert (types[10]["type"], types[11]["type"]) == ("INTERVAL_DAY_TIME", "INTERVAL_YEAR_MONTH")
    ((row,),) = [page["results"]["data"] for page in pages if page["results"]["data"]]
    assert row["fields"] == [
        *(True, 1.5, "12345678901234567890.5"),
        *("2020-01-02T03:04:05.12", "1970-01-01T01:00:01.5Z", "01:02:03", "AP8=", [1, None]),
        *({"a": 1}, {"EXPR$0": 1, "EXPR$1": "x"}, 7_200_000, 14, None, "NaN"),
    ]
    assert client.execute(query, "PLAIN_TEXT") == [
        [
            *("TRUE", "1.50", "12345678901234567890.5"),
            *("2020-01-02 03:04:05.120", "1970-01-01 01:00:01.500", "01:02:03", "x'00ff'", "[1, NULL]"),
            *("{a=1}", "(1, x)", "+0 02:00:00.000", "+1-02", None, "NaN"),
        ]
    ]


def test_the_last_page_can_be_read_again(client: GatewayClient) -> None:
    operation = client.submit("SHOW CATALOGS")
    client.wait_for(operation, "FINISHED")
    first = client.request("GET", f"{operation}/result/0?rowFormat=JSON")
    assert client.request("GET", f"{operation}/result/0?rowFormat=JSON") == first
    assert client.request("GET", f"{operation}/result/1?rowFormat=JSON")[1]["resultType"] == "EOS"
    assert client.request("GET", f"{operation}/result/0?rowFormat=JSON") == first
    code, answer = client.request("GET", f"{operation}/result/7?rowFormat=JSON")
    assert code == 500
    assert "page 7 of the result cannot be read" in answer["errors"][-1]


def test_a_long_result_has_several_pages(client: GatewayClient) -> None:
    client.execute(
        "CREATE TABLE numbers (n INT) WITH ('connector' = 'datagen', 'number-of-rows' = '12000', "
        "'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '12000')"
    )
    pages = list(client.pages(client.submit("SELECT n FROM numbers")))
    assert max(len(page["results"]["data"]) for page in pages) <= 5000
    rows = [row["fields"][0] for page in pages for row in page["results"]["data"]]
    assert sorted(rows) == list(range(1, 12_001))


def test_errors_name_the_problem_behind_the_last_cause(client: GatewayClient) -> None:
    shown = client.fail("SELECT * FROM missing").rpartition("Caused by: ")[2].partition("\tat ")[0]
    assert shown.startswith("org.apache.flink.table.api.ValidationException: there is no table 'missing'")
    assert "SqlParserException: unexpected 'SELEC'" in client.fail("SELEC 1")
    assert "option 'rest.port' cannot be set in a session" in client.fail("SET 'rest.port' = '1'")
    assert client.execute("SHOW CATALOGS") == [["default_catalog"]]  # the session stays usable


def test_a_failing_query_fails_when_its_rows_are_read(client: GatewayClient) -> None:
    operation = client.submit("SELECT CAST(s AS INT) FROM (VALUES ('1'), ('x')) t(s)")
    client.wait_for(operation, "FINISHED")
    for token in range(100):
        code, answer = client.request("GET", f"{operation}/result/{token}?rowFormat=JSON")
        if code == 500:
            assert "x" in answer["errors"][-1]
            return
    pytest.fail("the query did not fail")


def test_a_query_is_cancelled(client: GatewayClient) -> None:
    client.execute(ENDLESS)
    operation = client.submit("SELECT n FROM endless")
    pages = client.pages(operation)
    while not next(pages)["results"]["data"]:
        pass
    assert client.request("POST", f"{operation}/cancel") == (200, {"status": "CANCELED"})
    assert client.status(operation) == "CANCELED"
    code, answer = client.request("GET", f"{operation}/result/0?rowFormat=JSON")
    assert code == 500
    assert "its status is CANCELED" in answer["errors"][-1]
    assert [status for _, _, status, _ in client.execute("SHOW JOBS")] == ["CANCELED"]


def test_jobs_of_inserts(client: GatewayClient) -> None:
    client.execute(ENDLESS)
    client.execute("CREATE TABLE sink (n INT) WITH ('connector' = 'blackhole')")
    (page, _) = client.pages(client.submit("INSERT INTO sink SELECT n FROM endless"))
    ((job,),) = [row["fields"] for row in page["results"]["data"]]
    assert page["results"]["columns"][0]["name"] == "job id"
    assert page["jobID"] == job
    assert client.execute(f"DESCRIBE JOB '{job}'")[0][0] == job
    assert client.execute(f"STOP JOB '{job}'") == [["OK"]]
    assert client.execute("SHOW JOBS")[0][2] == "CANCELED"


def test_options_of_one_statement(client: GatewayClient) -> None:
    operation = client.submit("SELECT TO_TIMESTAMP_LTZ(0, 3)", executionConfig={"table.local-time-zone": "Asia/Tokyo"})
    rows = [row["fields"] for page in client.pages(operation) for row in page["results"]["data"]]
    assert rows == [["1970-01-01T09:00:00Z"]]
    assert client.execute("SELECT TO_TIMESTAMP_LTZ(0, 3)") == [["1970-01-01T00:00:00Z"]]


def test_version_1_has_no_row_formats(gateway: Any) -> None:
    client = GatewayClient(gateway.address, "v1")
    pages = list(client.pages(client.submit("SELECT 1")))
    assert [row["fields"] for page in pages for row in page["results"]["data"]] == [[1]]
    assert "rowFormat" not in pages[0]["nextResultUri"]
