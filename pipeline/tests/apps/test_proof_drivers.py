"""Drivers of the proof: their waits, and their errors when a wait has no end."""

from pathlib import Path

import pytest

from semel_pipelines.proof import drivers
from semel_pipelines.proof.drivers import Driver, DriverError, Pipeline
from semel_pipelines.proof.spark_cluster import SparkCluster


async def test_a_driver_that_is_given_no_executor_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(drivers, "_PROGRESS_TIMEOUT_S", 0.01)
    pipeline = Pipeline(name="income", module="semel_pipelines.pizza_income", options={})
    driver = Driver(pipeline, SparkCluster(tmp_path), "127.0.0.1:1", tmp_path)
    with pytest.raises(DriverError, match=r"income has had no executor for 0\.01 s: see .*log"):
        await driver.kill_executor()
