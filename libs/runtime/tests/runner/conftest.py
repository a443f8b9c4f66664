"""The runner that its tests share."""

from collections.abc import AsyncIterator

import pytest
from runner_harness import Service, start


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    service = await start()
    yield service
    service.volume.release()
    await service.runner.close()
