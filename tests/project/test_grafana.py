"""The dashboard for Grafana asks for metrics that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_metric_of_the_dashboard_is_documented() -> None:
    dashboard = json.loads((ROOT / "docs/grafana/millstream-jobs.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    metrics = set(re.findall(r"flink_[a-z_]*_(\w+)\{", " ".join(expressions)))
    assert len(metrics) > 10
    page = (ROOT / "docs/reference/metrics.md").read_text()
    rates = [metric for metric in metrics if metric.endswith("PerSecond") and "Time" not in metric]
    names = metrics.difference(rates) | {metric.removesuffix("PerSecond") for metric in rates}
    assert not [name for name in sorted(names) if f"`{name}`" not in page]
