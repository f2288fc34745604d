"""Queries have the results of the real Flink: names, types, the final table, and the changelog if its order is
fixed."""

from typing import Any

import pytest
from sql_cases import GOLDEN, changelog, content, environment, materialize

from millstream.sql.errors import SqlError

TOPICS = sorted(path.stem for path in GOLDEN.glob("*.yaml"))
QUERIES = [
    pytest.param(topic, query, id=f"{topic}-{query['name']}")
    for topic in TOPICS
    for query in content(topic).get("queries", [])
    if "changelog" in query
]
REFUSED = [
    pytest.param(topic, query, id=f"{topic}-{query['name']}")
    for topic in TOPICS
    for query in content(topic).get("queries", [])
    if "refused" in query and "differs" not in query
]


@pytest.mark.parametrize(("topic", "query"), QUERIES)
def test_a_query_has_the_result_of_flink(topic: str, query: dict[str, Any], inline_engine: None) -> None:
    case = content(topic)
    names, types, rows = changelog(environment(case), query["sql"])
    assert names == query["names"]
    assert materialize(rows) == materialize(query["changelog"])
    if query.get("exact", case.get("exact", True)):
        assert rows == query["changelog"]
    assert types == query["types"]


@pytest.mark.parametrize(("topic", "query"), REFUSED)
def test_a_query_that_flink_refuses_is_refused(topic: str, query: dict[str, Any], inline_engine: None) -> None:
    env = environment(content(topic))
    with pytest.raises(SqlError):
        env.execute_sql(query["sql"])


@pytest.mark.parametrize(("topic", "query"), QUERIES)
def test_mini_batches_do_not_change_the_final_table(topic: str, query: dict[str, Any], inline_engine: None) -> None:
    options = {"table.exec.mini-batch.enabled": "true", "parallelism.default": "2"}
    _, _, rows = changelog(environment(content(topic), options), query["sql"])
    assert materialize(rows) == materialize(query["changelog"])
