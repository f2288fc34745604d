"""Every example runs, prints the documented output, and is short. They share one Spark."""

import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
FLAGSHIP = {"fraud_detection.py", "fraud_demo.py"}  # tests/spark/test_demo.py

PRINTED = {
    "async_enrichment.py": [
        "jam to bob in Oslo",
        "rice to eve in an unknown place",
        "salt to ada in London",
        "tea to ada in London",
    ],
    "batch.py": [
        "11 results as a stream, 9 as a batch",
        "results for 'the' as a batch: [3]",
        "results for 'the' as a stream: [1, 2, 3]",
    ],
    "broadcast_rules.py": [
        "ada paid 10: fine",
        "ada paid 600: fine",
        "bob paid 900: large",
        "eve paid 5000: huge and large",
    ],
    "cep_fraud.py": ["ada: jump [1, 900]", "ada: tested card [2, 1, 900]", "eve: jump [40, 450]"],
    "connected_streams.py": ["1 x jam = 450 cents", "10 x tea = 3000 cents", "3 x tea = 900 cents"],
    "custom_sink.py": ["(100, 328350)"],
    "custom_source.py": ["ada has id 1", "bob has id 2", "eve has id 3"],
    "event_time_windows.py": [
        "north from 0 to 10 s: at most 24.0 degrees",
        "north from 10 to 20 s: at most 21.0 degrees",
        "south from 0 to 10 s: at most 25.5 degrees",
        "south from 10 to 20 s: at most 27.5 degrees",
    ],
    "interval_join.py": [
        "ada paid 280 cents for bread after 1.5 s",
        "ada paid 300 cents for tea after 3 s",
    ],
    "keyed_state.py": [
        "ada bought after 4 visits (/home /docs /home /buy), most to /home",
        "bob bought after 2 visits (/home /buy), most to /home",
    ],
    "lakehouse.py": [
        "an earlier version has fewer rows: True",
        "rows after the first job: 2000",
        "rows after the second job: 3000",
    ],
    "late_data.py": [
        "late> (a,5,64)",
        "window> (a,17,52)",
        "window> (a,27,384)",
        "window> (a,9,11)",
        "window> (a,9,3)",
    ],
    "learning.py": [
        "petal of 4.2 x 1.2 cm: another iris",
        "petal of 6.1 x 2.3 cm: virginica",
    ],
    "postgres_cdc.py": [
        "the rows of the table: [('ada', 300), ('bob', 500)]",
        "what changed for ada: [('ada', 0), ('ada', 350), ('ada', 390)]",
        "what changed for bob: [('bob', 0)]",
    ],
    "restart_from_checkpoint.py": [
        "in all: {'even': 1500, 'odd': 1500}",
        "the first run failed: RuntimeError: the power went out",
        "the second run went on from chk-2 and looked at 1,000 of 3,000 numbers",
    ],
    "savepoint.py": [
        "each key was counted to the end: [(0, 50000), (1, 50000), (2, 50000), (3, 50000)]",
        "stopped before the end: True",
    ],
    "session_windows.py": [
        "ada: 1 clicks from 90 to 120 s",
        "ada: 3 clicks from 0 to 65 s",
        "bob: 1 clicks from 4 to 34 s",
        "bob: 1 clicks from 50 to 80 s",
    ],
    "side_outputs.py": [
        "bad> '': invalid literal for int() with base 10: ''",
        "bad> 'twelve': invalid literal for int() with base 10: 'twelve'",
        "negative> -7",
        "number> -7",
        "number> 12",
        "number> 30",
    ],
    "sql_windows.py": [
        "00:00 Rome sold most, for 5890 cents",
        "00:01 Rome sold most, for 7290 cents",
        "00:02 Oslo sold most, for 7430 cents",
    ],
    "stateful_functions.py": [
        "goodbye ada, you came 3 times",
        "goodbye bob, you came 1 times",
        "hello ada, visit 1",
        "hello ada, visit 2",
        "hello ada, visit 3",
        "hello bob, visit 1",
    ],
    "table_api.py": [
        "large: 2 orders, 3200 cents",
        "small: 2 orders, 540 cents",
    ],
    "sklearn_in_state.py": [
        "a worker was killed: True",
        "outputs: 600",
        "sensor 0 has the model of a plain loop: True",
        "sensor 1 has the model of a plain loop: True",
        "sensor 2 has the model of a plain loop: True",
    ],
    "timers.py": ["order b2 was not paid by second 65"],
    "typed_dataclasses.py": [
        "Bill(driver='ada', cents=1037)",
        "Bill(driver='ada', cents=735)",
        "Bill(driver='bob', cents=2300)",
        "DataclassTypeInfo<Bill>(driver: String, cents: Long)",
    ],
    "window_join.py": [
        "ada only looked at /tea",
        "ada saw /jam and bought tea",
        "ada saw /tea and bought tea",
        "bob only looked at /tea",
    ],
}


def run(name, capsys):
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return sorted(re.sub(r"^\d+> ", "", line) for line in capsys.readouterr().out.splitlines())


def test_every_example_has_a_test():
    here = {path.name for path in EXAMPLES.glob("*.py")} - FLAGSHIP
    assert here == {*PRINTED, "word_count.py", "built_in_aggregations.py", "kafka_exactly_once.py"}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_an_example_is_short_and_begins_with_a_summary(path):
    text = path.read_text(encoding="utf-8")
    assert text.startswith('"""')
    assert path.name in FLAGSHIP or len(text.splitlines()) <= 60


@pytest.mark.usefixtures("spark_context")
@pytest.mark.parametrize("name", sorted(PRINTED))
def test_an_example_prints_the_output_in_its_docstring(name, capsys):
    assert run(name, capsys) == PRINTED[name]


@pytest.mark.usefixtures("spark_context")
def test_the_last_count_of_every_word_is_its_number(capsys):
    counted = {}
    for line in run("word_count.py", capsys):
        word, count = line.strip("()").split(",")
        counted[word] = max(counted.get(word, 0), int(count))
    assert counted["to"] == 3
    assert sum(counted.values()) == 18


@pytest.mark.usefixtures("spark_context")
def test_built_in_aggregates_see_every_record_once(capsys):
    rows = [line[3:-1].split(",") for line in run("built_in_aggregations.py", capsys)]
    windows = {(shop, int(start)) for shop, start, *_ in rows}
    assert len(rows) == len(windows) == 3 * 4  # the disorder sets the first records back into a window before 0
    assert sum(int(n) for _, _, _, n, *_ in rows) == 30_000
