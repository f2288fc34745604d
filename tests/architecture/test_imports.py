"""The time that an import takes, and the modules it loads."""

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


def test_expected_output_is_computed_without_the_engine():
    own = {"millstream_chaos/samples/expected.py", "millstream_chaos/samples/sample_input.py"}
    inputs = {
        "millstream_chaos.samples",
        "millstream_chaos.samples.sample_input",
        "millstream_chaos.samples.sample_input.Event",
    }
    found = {module for name in own for module, _ in imported(trees()[name]) if module.startswith("millstream")}
    assert found <= inputs
