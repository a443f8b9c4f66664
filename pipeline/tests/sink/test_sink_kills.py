"""One job of Spark whose driver is killed; `make pipeline-chaos` plays the many others."""

from pathlib import Path
from random import Random

import pytest
from cluster import Cluster
from crashes.scenarios import Stage, run_scenario


def killed_after_the_decision(stage: Stage, topic: str) -> None:
    plan = stage.plan(kill_after_commit=(1,))
    stage.until_done(topic, plan, "--for-each-batch")


@pytest.mark.slow
def test_a_killed_driver_loses_nothing_and_writes_nothing_twice(
    semel: Cluster, tmp_path: Path
) -> None:
    stage = Stage(
        name="kills",
        semel=semel,
        source=semel.topic(4),
        folder=tmp_path / "kills",
        random=Random(0),
        batches=3,
        rows=40,
    )
    report = run_scenario(stage, killed_after_the_decision)
    assert report.is_right, report
    assert report.runs == 2
    assert (report.notes["kill after commit"], report.notes["replay"]) == (1, 1)
    assert report.discarded == 0
