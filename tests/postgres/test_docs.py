"""The code blocks of the page on PostgreSQL run in order."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parent.parent.parent / "docs" / "howto" / "postgres.md"
FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_page_runs(database, capsys):
    database.execute("CREATE TABLE orders (id bigint PRIMARY KEY, customer text, amount bigint)")
    database.execute("CREATE TABLE totals (customer text PRIMARY KEY, total bigint)")
    blocks = FENCE.findall(PAGE.read_text(encoding="utf-8"))
    names = {"__name__": "__main__"}
    for block in blocks:
        exec(compile(block.replace("postgresql://localhost/shop", database.url), "<documentation>", "exec"), names)
    assert database.execute("SELECT * FROM totals ORDER BY customer") == [("ann", 42), ("bob", 5)]
    shown = capsys.readouterr().out
    assert "+I Row(id=3, customer='ann', amount=12)" in shown
    assert "('ann', [42])\n('eve', [])" in shown
    assert len(blocks) == 5
