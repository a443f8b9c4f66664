"""Each alert has a test that it fires, and a passage with the operator's steps."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = ("alerts.yml", "alerts-kubernetes.yml")
RULES = "".join((ROOT / "observability" / each).read_text() for each in FILES)
ALERTS = re.findall(r"alert: (\w+)", RULES)


def test_each_fires_and_is_silent_before() -> None:
    cases = (ROOT / "observability" / "alerts_test.yml").read_text()
    silent = re.findall(r"alertname: (\w+), exp_alerts: \[\]", cases)
    fires = re.findall(r"alertname: (\w+)\n +exp_alerts:\n", cases)
    assert sorted(fires) == sorted(ALERTS)
    assert sorted(silent) == sorted(ALERTS)


def test_each_is_explained() -> None:
    page = (ROOT / "docs" / "run" / "operations.md").read_text()
    assert re.findall(r"^### (Semel\w+)", page, re.MULTILINE) == ALERTS


def test_clusters_in_one_prometheus_are_kept_apart() -> None:
    aggregated = re.findall(r"\b(?:sum|max|min|avg|count)\b *(?:by )?\(([^)]*)\)", RULES)
    assert aggregated
    assert [each for each in aggregated if "namespace" not in each.split(", ")] == []
    dashboard = json.loads((ROOT / "observability" / "dashboard.json").read_text())
    assert "namespace" in {each["name"] for each in dashboard["templating"]["list"]}
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            for matchers in re.findall(r"\bsemel_\w+(.{0,24})", target["expr"]):
                assert matchers.startswith('{namespace=~"$namespace"'), target["expr"]
