"""Every test here runs in virtual time: waiting costs nothing, and waiting for ever is an error.

And most of them on one cluster, which others replace by a fixture of their own.
"""

import asyncio
from collections.abc import Callable, Mapping

import pytest
from producer_harness import FakeCluster

from semel_runtime.testing.virtual_time import VirtualTimeLoop


def pytest_asyncio_loop_factories(
    config: pytest.Config,  # noqa: ARG001 - the hook's
    item: pytest.Item,  # noqa: ARG001 - the hook's
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"virtual-time": VirtualTimeLoop}


@pytest.fixture
def fake() -> FakeCluster:
    cluster = FakeCluster()
    cluster.create_topic("t", partitions=4)
    return cluster
