"""PyFlink's names are here, with signatures that calls written for PyFlink fit, or stand in exclusions.toml."""

from __future__ import annotations

import fnmatch
import importlib
import inspect
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import record_api

API: dict[str, dict[str, Any]] = json.loads(record_api.GOLDEN.read_text(encoding="utf-8"))
EXCLUSIONS: dict[str, str] = tomllib.loads((Path(__file__).parent / "exclusions.toml").read_text(encoding="utf-8"))
MISSING = object()


def is_excluded(key: str) -> bool:
    return any(fnmatch.fnmatchcase(key, pattern) for pattern in EXCLUSIONS)


def misfit(wanted: list[str], found: list[str]) -> str | None:
    """Why a call written for the parameters `wanted` may not fit those that were found."""
    java = [each for each in wanted if each.lstrip("*_").startswith(("j_", "java_"))]
    expected = [each.rstrip("=") for each in wanted if each not in java]
    have = {each.rstrip("="): each.endswith("=") for each in found}
    takes_all = {"*": any(n.startswith("*") and n[1] != "*" for n in have), "**": any(n[:2] == "**" for n in have)}
    for place, name in enumerate(expected):
        if name.startswith("*"):
            if not takes_all["**" if name.startswith("**") else "*"]:
                return f"no {name}"
            continue
        if name not in have:
            return f"no parameter {name}"
        if f"{name}=" in wanted and not have[name]:
            return f"{name} has no default"
        before = [each for each in found if not each.startswith("*")][: place + 1]
        if name not in [each.rstrip("=") for each in before]:
            return f"{name} is at another place"
    needed = [name for name, optional in have.items() if not optional and not name.startswith("*")]
    more = [name for name in needed if name not in expected]
    return f"also needs {', '.join(more)}" if more and not java else None


def problems() -> Iterator[tuple[str, str]]:
    """Every public name of PyFlink that is missing here or does not fit."""
    for module, names in API.items():
        try:
            ours = importlib.import_module(f"millstream.{module}")
        except ModuleNotFoundError:
            ours = None
        for name, wanted in names.items():
            found = getattr(ours, name, MISSING)
            if found is MISSING:
                yield f"{module}.{name}", "missing"
            elif "methods" in wanted:
                yield from problems_of_class(f"{module}.{name}", wanted, found)
            elif why := misfit(wanted["parameters"], record_api.parameters(found, bound=False)):
                yield f"{module}.{name}", why


def problems_of_class(key: str, wanted: dict[str, Any], found: Any) -> Iterator[tuple[str, str]]:
    for method, parameters in wanted["methods"].items():
        value = inspect.getattr_static(found, method, MISSING)
        if value is MISSING:
            yield f"{key}.{method}", "missing"
        elif parameters is not None and isinstance(value, record_api.CALLABLE):
            have = record_api.method_parameters(value)
            if have is not None and (why := misfit(parameters, have)):
                yield f"{key}.{method}", why
    for name in wanted["attributes"]:
        if inspect.getattr_static(found, name, MISSING) is MISSING:
            yield f"{key}.{name}", "missing"


FOUND = dict(problems())


def test_every_name_is_here_and_fits_or_has_a_reason() -> None:
    left = {key: why for key, why in FOUND.items() if not is_excluded(key)}
    assert not left, "\n".join(f"{key}: {why}" for key, why in left.items())


@pytest.mark.parametrize("pattern", sorted(EXCLUSIONS))
def test_an_exclusion_still_excludes_something_and_says_why(pattern: str) -> None:
    assert fnmatch.filter(FOUND, pattern), "remove it: nothing is missing any more"
    assert len(EXCLUSIONS[pattern]) > 10


def test_the_rule_sees_a_signature_that_does_not_fit() -> None:
    assert misfit(["a", "b="], ["a"]) == "no parameter b"
    assert misfit(["a", "b="], ["a", "b"]) == "b has no default"
    assert misfit(["a"], ["a", "b"]) == "also needs b"
    assert misfit(["a", "b"], ["b", "a"]) == "a is at another place"
    assert misfit(["*a"], ["a"]) == "no *a"
    assert misfit(["a", "b="], ["a", "b=", "c="]) is None


NOT_YET = "not there yet"


def reason_of(key: str) -> str | None:
    """The reason for which a name, or the class that it is a member of, is excluded."""
    for pattern, reason in EXCLUSIONS.items():
        if fnmatch.fnmatchcase(key, pattern) or fnmatch.fnmatchcase(key.rpartition(".")[0], pattern):
            return reason
    return None


def keys() -> Iterator[str]:
    """Every public name of PyFlink, with the methods and attributes of classes."""
    for module, names in API.items():
        for name, wanted in names.items():
            yield f"{module}.{name}"
            if "methods" in wanted:
                yield from (f"{module}.{name}.{member}" for member in (*wanted["methods"], *wanted["attributes"]))


@pytest.mark.parametrize(
    ("package", "least"), [("common", 0.995), ("datastream", 0.995), ("metrics", 0.995), ("table", 0.995)]
)
def test_the_share_of_names_does_not_fall(package: str, least: float) -> None:
    reasons = {key: reason_of(key) for key in keys() if key.split(".")[0] == package}
    wanted = [key for key, reason in reasons.items() if reason is None or NOT_YET in reason]
    missing = [key for key in wanted if reasons[key] is not None]
    share = 1 - len(missing) / len(wanted)
    assert share >= least, f"{package}: {share:.2%}, missing {missing}"
