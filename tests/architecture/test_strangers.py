"""A connector does not import another connector, and a rewrite rule does not import another rule."""

import pytest
from sources import imported, trees

SHARED = {"registry"}


@pytest.mark.parametrize("family", ["connectors", "sql/logical/rules"])
def test_modules_of_a_family_do_not_import_each_other(family):
    package = f"millstream.{family.replace('/', '.')}."
    met = []
    for name, tree in trees().items():
        if not name.startswith(f"{family}/") or name == f"{family}/__init__.py":
            continue
        own = name.removeprefix(f"{family}/").split("/")[0].removesuffix(".py")
        for module, line in imported(tree):
            other = module.removeprefix(package).split(".")[0] if module.startswith(package) else own
            if own not in SHARED and other not in {own, *SHARED}:
                met.append(f"{name}:{line} imports {module}")
    assert not met
