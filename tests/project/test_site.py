"""The documentation site builds without a warning: no dead link, no page outside of the navigation."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent
DOCS = REPOSITORY / "docs"
PUBLIC = {
    "common.html": "millstream.common.Types",
    "datastream.html": "millstream.datastream.DataStream.key_by",
    "state-and-windows.html": "millstream.datastream.state.ValueStateDescriptor",
    "connectors.html": "millstream.datastream.connectors.kafka.KafkaSource.builder",
    "connector.html": "millstream.connector.source.SplitEnumerator.plan",
    "table.html": "millstream.table.TableEnvironment.execute_sql",
    "cep.html": "millstream.cep.Pattern.begin",
    "iteration.html": "millstream.iteration.iterate_delta",
    "gelly.html": "millstream.gelly.Graph.page_rank",
    "ml.html": "millstream.ml.KMeans",
    "statefun.html": "millstream.statefun.SdkAddress",
    "state-processor.html": "millstream.state_processor.Savepoint",
    "metrics.html": "millstream.metrics.Counter",
    "testing.html": "millstream.testing.harness_for",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as `make docs` does."""
    into = tmp_path_factory.mktemp("site")
    recipe = re.search(r"^docs:.*\n\t\$\(PYTHON\) (.*)$", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)[1]
    words = [
        word.replace("build/site", str(into)).replace("build/doctrees", str(into / "doctrees"))
        for word in recipe.split()
    ]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
    done = subprocess.run([sys.executable, *words], cwd=REPOSITORY, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return into


def test_every_page_exists_and_can_be_searched(site):
    for page in DOCS.rglob("*.md"):
        assert (site / page.relative_to(DOCS)).with_suffix(".html").is_file()
    assert (site / "search.html").is_file()
    assert "watermark" in (site / "searchindex.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PUBLIC)
def test_the_reference_has_the_docstrings_of_every_public_package(site, page):
    assert f'id="{PUBLIC[page]}"' in (site / "reference" / "api" / page).read_text(encoding="utf-8")


def test_links_to_other_files_lead_to_the_repository(site):
    assert "https://github.com/millstream/millstream/blob/main/README.md" in (site / "index.html").read_text("utf-8")
