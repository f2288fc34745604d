"""The examples in docstrings of the public API run."""

import doctest
import importlib
import pkgutil

import pytest

import millstream

PUBLIC = ("common", "connector", "datastream", "table", "cep", "state_processor", "testing", "functions")


def modules_with_examples() -> list[str]:
    names = []
    for package in PUBLIC:
        top = importlib.import_module(f"{millstream.__name__}.{package}")
        for module in pkgutil.walk_packages(top.__path__, f"{top.__name__}."):
            loader = module.module_finder.find_spec(module.name, None).loader  # type: ignore[union-attr, call-arg]
            if ">>>" in (loader.get_source(module.name) or ""):  # type: ignore[union-attr]
                names.append(module.name)
    return names


@pytest.mark.usefixtures("inline_engine")
@pytest.mark.parametrize("name", modules_with_examples())
def test_the_examples_of_a_module_run(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert results.attempted
    assert not results.failed
