"""Fixtures of the broker's tests."""

from collections.abc import AsyncIterator

import pytest
from broker_service import Broker, serving

from semel_runtime.testing.volume import MemoryVolume


@pytest.fixture
def volume() -> MemoryVolume:
    """A disk in memory, which survives the brokers on it."""
    return MemoryVolume()


@pytest.fixture
async def broker(volume: MemoryVolume) -> AsyncIterator[Broker]:
    """A broker on the volume."""
    async with serving(volume) as serving_broker:
        yield serving_broker
