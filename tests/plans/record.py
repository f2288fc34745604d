"""Records the plans of fixtures: `python tests/plans/record.py`, or with file names. Review the diff afterwards."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent))

import yaml
from plan_fixtures import PHYSICAL_FILES, RULE_FILES, load, plan_physical, plan_rule

_KEYS = ("rule", "decision", "sql", "options", "before", "after", "otherwise")


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks."""


_Dumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None),
)


def record(path: Path) -> None:
    """Plan the query of a fixture, and write its plans."""
    fixture: dict[str, Any] = load(path)
    fixture["before"], fixture["after"] = (plan_rule if "rule" in fixture else plan_physical)(fixture)
    if otherwise := fixture.pop("otherwise", None):
        otherwise["after"] = plan_physical({**fixture, **otherwise})[1]
        fixture["otherwise"] = otherwise
    fixture = {key: fixture[key] for key in _KEYS if key in fixture}
    path.write_text(yaml.dump(fixture, Dumper=_Dumper, sort_keys=False, width=1000, allow_unicode=True))


if __name__ == "__main__":
    for path in [*RULE_FILES, *PHYSICAL_FILES]:
        if not sys.argv[1:] or path.stem in sys.argv[1:]:
            record(path)
