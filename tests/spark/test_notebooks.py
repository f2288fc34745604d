"""Notebooks in a real kernel: the examples, live tables, jobs, plans and errors."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell

EXAMPLES = Path(__file__).parents[2] / "examples"

FAILING_FUNCTION = """
from millstream.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1, 0]).map(lambda number: 1 // number).print()
env.execute("division")
"""

# In one cell, because the client of the test ignores output that a thread sends between two cells.
INSERT = """
import threading
result = t_env.execute_sql("INSERT INTO sink SELECT amount FROM orders")
display(result)
result.wait()
for thread in threading.enumerate():
    if thread.name == "job-display":
        thread.join(60)
"""


def execute(notebook):
    """Execute a notebook in a kernel of its own; its cells then have their outputs."""
    NotebookClient(notebook, timeout=240, kernel_name="python3").execute()


def read(name):
    return nbformat.read(EXAMPLES / name, as_version=4)


def html_of(cell):
    """The HTML that a reader sees at the end, after `update_display_data` has replaced it."""
    return [output["data"]["text/html"] for output in cell["outputs"] if "text/html" in output.get("data", {})]


def svg_of(html):
    return base64.b64decode(re.search(r"data:image/svg\+xml;base64,([^\"]+)", html)[1]).decode()


def test_the_notebook_has_its_stored_output():
    notebook, shown = read("notebook.ipynb"), read("notebook.ipynb")
    execute(notebook)
    for cell, as_shown in zip(notebook.cells, shown.cells, strict=True):
        texts = [output["text"] for output in cell.get("outputs", ()) if output["output_type"] == "stream"]
        assert "".join(texts) == "".join(output["text"] for output in as_shown.get("outputs", ()))


def test_tables_jobs_plans_and_errors_in_a_notebook():
    notebook = read("notebook_sql.ipynb")
    examples = len(notebook.cells)
    may_fail = {"tags": ["raises-exception"]}
    notebook.cells += [
        new_code_cell("%sql CREATE TABLE sink (`<b>` INT) WITH ('connector' = 'blackhole')"),
        new_code_cell(INSERT),
        new_code_cell("t_env.from_path('sink')"),
        new_code_cell("%sql SELECT nothing FROM orders", metadata=may_fail),
        new_code_cell("%%sql --env nobody\nSELECT 1", metadata=may_fail),
        new_code_cell(FAILING_FUNCTION, metadata=may_fail),
        new_code_cell("env.from_collection([1]).map(lambda number: number).key_by(lambda number: number)"),
    ]
    execute(notebook)
    cells = [cell for cell in notebook.cells[:examples] if cell["cell_type"] == "code"]
    _, created, counted, into, large, frame = cells
    ok, tables = html_of(created)
    assert ok == "<div>OK</div>"
    assert "<tr><td>orders</td></tr>" in tables
    (table,) = html_of(counted)
    assert table.startswith("<div>1 row after ")
    assert "<tr><td>1000</td><td>1</td><td>1000</td></tr>" in table
    assert into["outputs"] == []
    (table,) = html_of(large)
    assert "<tr><td>amount</td><td>INT</td></tr>" in table
    assert "orders" in svg_of(table)
    assert frame["outputs"][0]["text"] == "['amount', 'id'] 9\n"

    _, insert, hostile, wrong_column, wrong_environment, division, stream = notebook.cells[examples:]
    (job,) = html_of(insert)
    assert "<tr><th>status</th><td>FINISHED</td></tr>" in job
    assert "1,000" in job
    (table,) = html_of(hostile)
    assert "<td>&lt;b&gt;</td>" in table
    (problem,) = wrong_column["outputs"]
    assert "nothing" in problem["traceback"][0]
    assert all("File" not in line for line in problem["traceback"])
    (problem,) = wrong_environment["outputs"]
    assert problem["traceback"][-1] == "  hint: name its variable: %%sql --env NAME"
    job, problem = division["outputs"]
    assert "<tr><th>status</th><td>FAILED</td></tr>" in job["data"]["text/html"]
    text = "\n".join(problem["traceback"])
    assert text.startswith("Traceback")
    assert "1 // number" in text
    assert "site-packages" not in text
    assert "Source" in svg_of(html_of(stream)[0])
