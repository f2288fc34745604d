"""What an import costs and loads."""

import subprocess
import sys

from sources import imported, trees


def test_importing_the_api_does_not_load_spark():
    program = "import sys, millstream.datastream; print(*{name.split('.')[0] for name in sys.modules})"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert not {"pyspark", "py4j"} & set(answer.stdout.split())


def test_the_package_does_not_import_its_tests():
    found = [name for name, tree in trees().items() for module, _ in imported(tree) if module.split(".")[0] == "tests"]
    assert not found
