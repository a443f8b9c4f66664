"""The same command line on every kind of Spark: in one process, on a cluster, over Connect."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from cluster import Cluster
from order_frames import order

from semel_pipelines.proof.spark_cluster import SparkCluster

LINES = range(1, 41)


@pytest.fixture
def orders(semel: Cluster) -> Mapping[str, str]:
    """Options that name topics, with some orders in them."""
    topics = {name: semel.topic(2) for name in ("orders", "income", "rejected")}
    semel.send(topics["orders"], [order(line=number) for number in LINES])
    semel.send(topics["orders"], [order(date="2015-04-01")])
    return topics


def run(
    semel: Cluster,
    topics: Mapping[str, str],
    folder: Path,
    *options: str,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Run the pipeline of income as a user does, and see that it is right."""
    command = (
        *(sys.executable, "-m", "semel_pipelines.pizza_income", "--available-now"),
        *(f"--bootstrap={semel.bootstrap}", f"--checkpoint={folder / 'checkpoint'}", *options),
        *(f"--{name}={topic}" for name, topic in topics.items()),
    )
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=560
    )
    assert done.returncode == 0, done.stderr
    (value,) = semel.values(topics["income"])
    assert json.loads(value or b"") == {
        "day": "2015-03-01",
        "type": "classic",
        "income": "530.00",
        "pizzas": 40,
    }


def without_java(folder: Path) -> dict[str, str]:
    """The environment, without programs called java."""
    for part in os.environ["PATH"].split(os.pathsep):
        for program in Path(part).glob("*"):
            link = folder / program.name
            if program.name != "java" and not link.is_symlink():
                link.symlink_to(program)
    found = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    return found | {"PATH": os.fspath(folder)}


@contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """A cluster of two workers; yields its address."""
    with asyncio.Runner() as runner:
        cluster = SparkCluster(folder)
        runner.run(cluster.__aenter__())
        try:
            yield cluster.url
        finally:
            runner.run(cluster.__aexit__(None, None, None))


def test_it_runs_over_connect_on_a_local_cluster_where_no_java_is_installed(
    semel: Cluster, orders: Mapping[str, str], tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    environment = without_java(tmp_path / "bin")
    place = ("--remote=local-cluster[2,1,768]", "--conf=spark.executor.memory=768m")
    run(semel, orders, tmp_path, *place, environment=environment)


def test_it_runs_on_a_cluster_of_real_workers(
    semel: Cluster, orders: Mapping[str, str], tmp_path: Path
) -> None:
    with standalone(tmp_path / "spark") as url:
        run(semel, orders, tmp_path, f"--master={url}", "--conf=spark.executor.cores=1")
